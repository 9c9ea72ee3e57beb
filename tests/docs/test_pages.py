"""How pages are read."""

from __future__ import annotations

import pytest

from tests.docs.pages import Page

_TEXT = """\
# A title

<!-- scene: facility -->

<!-- stdin: API token, - -->
<!-- expect: ^done$ -->
```sh
pulumi config set \\
  --secret a   # asks for it
# a comment

make up
```

<!-- edit: stacks/Pulumi.x.yaml -->
```yaml
a: 1
```

```console
$ make down
gone
```

## A `title` with [a link](x.md), twice?
"""


def test_what_a_page_holds() -> None:
    page = Page(name="docs/x.md", text=_TEXT)
    assert page.scene == "facility"
    assert page.commands == ["pulumi config set --secret a", "make up", "make down"]
    shell, settings, console = page.blocks
    assert (shell.one("stdin"), shell.all("expect")) == ("API token, -", ["^done$"])
    assert (settings.one("edit"), settings.text) == ("stacks/Pulumi.x.yaml", "a: 1")
    assert console.printed == ["gone"]
    assert page.anchors == {"a-title", "a-title-with-a-link-twice"}
    assert page.links == ["x.md"]


@pytest.mark.parametrize("text", ["<!-- shout: x -->\n", "<!-- expect: x -->\nsome words\n"])
def test_what_nobody_would_read_is_an_error(text: str) -> None:
    with pytest.raises(AssertionError, match=r"docs/x\.md:"):
        _ = Page(name="docs/x.md", text=text).blocks
