"""`add` for addresses: whole sites, and the feeds among the sources of a call."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kb.intake.crawl.options import TakeOptions
from kb.intake.sync.add import Adder
from kb.intake.sync.report import AddReport, Tally, merged_report
from kb.model.site import SiteOptions

if TYPE_CHECKING:
    # What reads sites is loaded for those who have some.
    from kb.intake.crawl.site_sources import SiteSources

Progress = Callable[[int, int], None]


class FeedAdder:
    """Adds the sources of one call, and takes the entries of the feeds among them."""

    def __init__(
        self, adder: Adder, sites: "Callable[[], SiteSources]", options: TakeOptions
    ) -> None:
        self._adder = adder
        self._adder.feeds = []
        self._sites = sites
        self._options = options
        self._reports: list[AddReport] = []

    def add(
        self, sources: Iterable[str], *, stdin_fd: int = 0, on_progress: Progress | None = None
    ) -> AddReport:
        """As `Adder.add`; a feed counts as its entries do."""
        self._adder.add(sources, stdin_fd=stdin_fd, on_progress=on_progress)
        for url in self._adder.feeds or ():
            self._reports.append(self._sites().add_feed(url, self._options))
        return self.report()

    def report(self) -> AddReport:
        """The results of the sources so far."""
        return merged_report([self._adder.report(), *self._reports])


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
