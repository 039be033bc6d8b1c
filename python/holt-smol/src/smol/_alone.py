"""Refuses to be imported beside smolmachines, which installs a module ``smol`` too: in one folder, the files of either
lie over those of the other, and no mixture works."""

from pathlib import Path

_site = Path(__file__).parent.parent
if any(_site.glob("smolmachines-*.dist-info")):
    raise ImportError(
        f"holt-smol and smolmachines are both in {_site}, and their files in its folder smol are mixed. "
        "Uninstall both (pip uninstall smolmachines holt-smol), then install holt-smol again.",
        name="smol",
    )
