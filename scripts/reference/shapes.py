"""The records of the documents that commands print with `--json`."""

from typing import Any

from kb.home.stats import DeadLetter, Stats
from kb.intake.sync import report as added
from kb.knowledge.answers import Answer, Sentence, Source
from kb.knowledge.guide import Guidance, GuideChunk
from kb.knowledge.notebook import JobReport
from kb.knowledge.registry.report import PulledLine, PullReport, ReadLine
from kb.knowledge.topics import Knowledge, Learned, LeftOut
from kb.model import doc, origin, search
from kb.model.signal import Signal
from kb.operations import (
    docs,
    doctor,
    embedder,
    entities,
    entries,
    jobs,
    migrate,
    remove,
    settings,
    show,
    signals,
    sources,
    tokens,
    trust,
    visibility,
)
from kb.operations.evaluate import ChangedQuestion, EvalReport, EvalRow
from kb.operations.facets import FacetsOfSpaces
from kb.operations.growth import Growth, MonthCount
from kb.search.facets import FacetValue
from kb.store.server_state import ServerState
from kb.store.trust import TrustedHome
from kb.upkeep.check import report as checked
from kb.upkeep.check.doctor import Advice
from kb.upkeep.check.plugins import PluginReport
from kb.upkeep.compactor.report import CompactReport
from kb.upkeep.transfer import TransferCounts
from reference.backup_shapes import backup_shapes
from reference.note_shapes import note_shapes
from reference.pack_shapes import pack_shapes
from reference.registry_shapes import registry_shapes


# Long because it is one table, with an entry for each command.
def shapes() -> dict[str, list[tuple[str, Any]]]:
    """For each command's document, the records in it: where, and of which class."""
    return {
        "add": [("", added.AddReport), ("docs", added.DocLine), ("problems", added.SourceProblem)],
        "search": [
            ("", search.SearchResult),
            ("hits", search.Hit),
            ("hits.legs", search.Legs),
            ("entity_alignment", search.EntityAlignment),
        ],
        "ask": [("", Answer), ("sentences", Sentence), ("sources", Source)],
        "ls": [("", docs.Docs), ("docs", docs.DocRow)],
        "show": [
            ("", show.WholeDoc),
            ("doc", doc.Doc),
            ("passages", show.Passage),
            ("references", entries.Reference),
        ],
        "stats": [("", Stats), ("dead_letters", DeadLetter)],
        "embedder": [("", embedder.Embedders)],
        "learn": [("", Learned), ("left_out", LeftOut)],
        "prompt": [("", Knowledge)],
        "rm": [("", remove.RemoveResult)],
        "entities": [
            ("", entities.EntitiesPage),
            ("entities", search.KnownEntity),
        ],
        "eval": [("", EvalReport), ("rows", EvalRow), ("changed", ChangedQuestion)],
        "growth": [("", Growth), ("months", MonthCount)],
        "facets": [("", FacetsOfSpaces), ("kinds", FacetValue)],
        "pack": pack_shapes(),
        "entries": [("", entries.Entries), ("entries", entries.ListedEntry)],
        "registry": registry_shapes(),
        "pull": [("", PullReport), ("registries", ReadLine), ("entries", PulledLine)],
        "guide": [("", Guidance), ("chunks", GuideChunk)],
        "signals": [("", signals.SignalList), ("signals", Signal)],
        "sync-all": [
            ("", added.SyncReport),
            ("sources", added.SourceLine),
            ("sources.problems", added.SourceProblem),
        ],
        "token": [("", tokens.TokenList), ("tokens", tokens.ListedToken)],
        "trust": [("", trust.TrustedHomes), ("homes", TrustedHome)],
        "sources": [("", sources.SourceList), ("sources", origin.Origin)],
        "note": note_shapes(),
        "job": [("", jobs.JobList), ("jobs", JobReport)],
        "doctor": [
            ("", doctor.DoctorReport),
            ("findings", Advice),
            ("plugins", PluginReport),
            ("server", ServerState),
        ],
        "migrate": [("", migrate.MigrateResult), ("copied", TransferCounts)],
        "config": [
            ("list", settings.SettingsReport),
            ("list.files", settings.SettingsFile),
            ("list.settings", settings.SettingRow),
            ("get", settings.SettingRow),
            ("path", settings.KbFolders),
        ],
        "visibility": [("", visibility.SetVisibilityResult)],
        "compact": [("", CompactReport)],
        "backup": backup_shapes(),
        "check": [
            ("", checked.CheckReport),
            ("checked", checked.CheckCounts),
            ("findings", checked.Finding),
        ],
    }
