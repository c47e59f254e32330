"""Turn the survey of a damaged store, and its salvage, into findings of a check."""

from collections.abc import Iterator
from typing import Final

from kb.store.survey import StoreSurvey
from kb.upkeep.check.report import CheckCounts, CheckReport, Finding, SalvageReport

_REPAIR: Final = "`kb check --repair` writes all readable records into a new store"
_AGAIN: Final = "`kb check --repair` adds it again from raw/, if its file is still there"
_LOST: Final = "add it again, or restore the home from a backup"


def survey_report(survey: StoreSurvey) -> CheckReport:
    """The report for a store that is too damaged to be opened."""
    findings = [
        Finding(place=item.place, problem=item.problem, mend=_REPAIR) for item in survey.problems
    ]
    for doc in survey.lost_docs:
        problem = f"the record of {doc.doc_id} cannot be read"
        findings.append(Finding(place=doc.place or doc.doc_id, problem=problem, mend=_AGAIN))
    findings += _unnamed(survey.lost_unnamed, _AGAIN)
    return CheckReport(
        sound=False,
        checked=CheckCounts(docs=_readable(survey)),
        findings=tuple(findings),
        findings_left_out=survey.problems_left_out,
    )


def salvage_findings(survey: StoreSurvey | None, salvage: SalvageReport) -> list[Finding]:
    """The findings after a salvage: those it repaired and those it could not."""
    findings = [
        Finding(place=item.place, problem=item.problem, mend=_REPAIR, repaired=True)
        for item in (survey.problems if survey else ())
    ]
    for doc in salvage.lost:
        problem = f"{doc.doc_id or 'its doc'} is lost, and raw/ does not say which file it was"
        findings.append(Finding(place=doc.place or doc.doc_id, problem=problem, mend=_LOST))
    # Without a survey the user asked to rebuild a lost store, and knows that all is lost.
    findings += _unnamed(salvage.lost_unnamed, _LOST) if survey else ()
    for path in salvage.unusable:
        problem = "no doc names it, and it cannot be added again"
        findings.append(Finding(place=path, problem=problem, mend=_LOST))
    return findings


def _unnamed(number: int | None, mend: str) -> Iterator[Finding]:
    if number is None:
        yield Finding(place="docs", problem="it is unknown how many are lost", mend=mend)
    elif number:
        problem = f"{number:,} are lost, and their names are unknown"
        yield Finding(place="docs", problem=problem, mend=mend)


def _readable(survey: StoreSurvey) -> int:
    return sum(table.readable for table in survey.tables if table.name == "docs")
