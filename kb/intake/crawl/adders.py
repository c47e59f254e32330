"""`add` for addresses: whole sites, and the feeds and repositories among the sources of a call."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kb.intake.crawl.options import TakeOptions
from kb.intake.sync.add import Adder
from kb.intake.sync.report import AddReport, Tally, merged_report
from kb.model.site import SiteOptions
from kb.model.source import is_repository

if TYPE_CHECKING:
    # What reads sites is loaded for those who have some.
    from kb.intake.crawl.site_sources import SiteSources

Progress = Callable[[int, int], None]


class FeedAdder:
    """Adds the sources of one call, and takes what feeds and repositories among them hold."""

    def __init__(
        self, adder: Adder, sites: "Callable[[], SiteSources]", options: TakeOptions
    ) -> None:
        self._adder = adder
        self._adder.feeds = []
        self._sites = sites
        self._options = options
        self._reports: list[AddReport] = []
        self._running: SiteSources | None = None

    def add(
        self, sources: Iterable[str], *, stdin_fd: int = 0, on_progress: Progress | None = None
    ) -> AddReport:
        """As `Adder.add`; a feed counts as its entries do, and a repository as its files."""
        named = list(sources)
        repositories = list(dict.fromkeys(filter(is_repository, named)))
        others = [source for source in named if not is_repository(source)]
        self._adder.add(others, stdin_fd=stdin_fd, on_progress=on_progress)
        for url in self._adder.feeds or ():
            self._reports.append(self._sites().add_feed(url, self._options))
        for source in repositories:
            self._running = self._sites()
            report = self._running.add_repository(source, self._options, on_progress)
            self._running = None
            self._reports.append(report)
        return self.report()

    def report(self) -> AddReport:
        """The results of the sources so far."""
        tally = self._running.running if self._running else None
        running = [tally.report()] if tally else []
        return merged_report([self._adder.report(), *self._reports, *running])


class SiteAdder:
    """Adds the sites of one call."""

    def __init__(self, sites: "SiteSources", site: SiteOptions, options: TakeOptions) -> None:
        self._sites = sites
        self._site = site
        self._options = options
        self._reports: list[AddReport] = []

    def add(
        self,
        sources: Iterable[str],
        *,
        stdin_fd: int = 0,  # noqa: ARG002  no site comes from standard input
        on_progress: Progress | None = None,
    ) -> AddReport:
        """Take the pages of the site of each start; as `SiteSources.add_site`."""
        for start in sources:
            self._sites.running = None
            report = self._sites.add_site(start, self._site, self._options, on_progress)
            self._sites.running = None
            self._reports.append(report)
        return self.report()

    def report(self) -> AddReport:
        """The results of the pages so far."""
        running = self._sites.running or Tally()
        return merged_report([*self._reports, running.report()])
