"""A rule that is skipped is one that is not kept, unless its class names the reason in `may_skip`."""

from __future__ import annotations

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    allowed = getattr(getattr(item, "cls", None), "may_skip", None)
    if report.skipped and allowed is not None:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if reason.removeprefix("Skipped: ") not in allowed:
            report.outcome = "failed"
            report.longrepr = f"{reason}: not among the reasons for which {item.name} may be skipped: {allowed}"
    return report
