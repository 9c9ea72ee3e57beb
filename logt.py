def test_x():
    import logging, sushy
    logging.getLogger("sushy").propagate=False
    logging.getLogger("sushy.main").warning("hello")
    l=logging.getLogger("sushy.main")
    while l: print(l, l.propagate, l.handlers); l=l.parent
    assert 0
