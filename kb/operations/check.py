"""Is a home whole? Its store, files and caches held against each other, and mended."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kb.errors import UsageError

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.model.config import Settings
    from kb.store.survey import StoreSurvey
    from kb.upkeep.check import CheckReport, Finding, SalvageReport

    CheckResult = CheckReport
    """What was looked at, and what is not as it should be."""
    CheckFinding = Finding
    """One thing that is not as it should be."""
    SalvageResult = SalvageReport
    """What a new store was made of."""
    Survey = StoreSurvey
    """What can be read of a store's file."""


def survey(home: Path) -> "Survey | None":
    """What can be read of the store's file, found without opening it; None without such a file.

    `is_safe` says whether it may be opened, `needs_salvage` whether a new store must be made.
    """
    from kb.store.content.layout import HomePaths
    from kb.upkeep.check.salvage import survey_home

    paths = HomePaths(home)
    return survey_home(paths) if paths.database is None and paths.has_store else None


def survey_result(survey: "Survey") -> "CheckResult":
    """The result of a check of a store that may not be opened."""
    from kb.upkeep.check.damage import survey_report

    return survey_report(survey)


def run(app: "App", *, repair: bool = False) -> "CheckResult":
    """Compare every record, file and cache with what names it; a home that was not made is whole.

    With `repair` what can be mended safely is. Raises StoreBusy, StoreDamaged, ReadOnlyHome.
    """
    from kb.upkeep.check import CheckCounts, CheckReport

    if not app.is_made:
        return CheckReport(sound=True, checked=CheckCounts(), findings=())
    report = app.checker.run(repair=repair)
    if app.caller.operator:
        return report
    return msgspec.structs.replace(report, findings=tuple(map(_unnamed, report.findings)))


def _unnamed(finding: "Finding") -> "Finding":
    """A finding for who does not own the home: a file's name has the words of its doc's title."""
    place = "a file of a doc" if "/" in finding.place else finding.place
    return msgspec.structs.replace(finding, place=place)


def salvage(home: Path, settings: "Settings") -> "SalvageResult":
    """Make a new store of all that can be read of the old one, and of what raw/ holds.

    The damaged file is kept beside it. Raises StoreBusy, StoreFull, ReadOnlyHome.
    """
    from kb.intake.canonicalize import Parser
    from kb.model.clock import SystemClock
    from kb.store.content.layout import HomePaths
    from kb.store.trust import trust_list, trusting_replaced_store
    from kb.upkeep.check import salvage as salvaging

    paths, limits = HomePaths(home), settings.ingest
    with (
        trusting_replaced_store(paths.root, trust_list()),
        Parser(memory_bytes_max=limits.parse_memory_bytes, cpu_s_max=limits.parse_cpu_s) as parser,
    ):
        return salvaging.salvage(paths, SystemClock(), parser)


def after_salvage(app: "App", before: "Survey | None", salvaged: "SalvageResult") -> "CheckResult":
    """Check the new store, mending what it needs; what became of the old one stands in front."""
    from kb.upkeep.check.damage import salvage_findings

    report = app.checker.run(repair=True)
    findings = salvage_findings(before, salvaged)
    return msgspec.structs.replace(
        report,
        sound=report.sound and all(finding.repaired for finding in findings),
        findings=(*findings, *report.findings),
        salvaged=salvaged,
    )


def files_to_rebuild(home: Path) -> int:
    """How many files of raw/ a lost store can be made of.

    Raises UsageError where there is a store, and where there is no file.
    """
    from kb.store.content.layout import HomePaths

    paths = HomePaths(home)
    paths.check_keeps_files("files to make a store of")
    if paths.has_store:
        raise UsageError("the home has a store; `kb check --repair` repairs it")
    files = sum(path.is_file() for path in paths.root.glob("raw/*/*"))
    if not files:
        raise UsageError(f"{paths.root / 'raw'} has no files that could be added again")
    return files
