import sys,asyncio,json,logging; sys.path.insert(0,"/tmp/w/redfish")
logging.basicConfig()
from tests.provider import fake_bmc
from tests.provider.test_redfish_tls import ask
with fake_bmc.running() as bmc:
    bmc.faults = [fake_bmc.moved("Systems", "http://127.0.0.1:1/redfish/v1/Systems")]
    ask(bmc.settings()); print(bmc.requests, bmc.faults)
