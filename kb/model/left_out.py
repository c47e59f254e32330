"""What a query leaves out, besides words: `-tag:x`. No caller says it but within a query."""

from kb.model.search import Filters, SearchRequest


class QueryFilters(Filters, frozen=True, kw_only=True):
    """The filters of a query that leaves docs out, too."""

    without: tuple[Filters, ...] = ()


class NarrowedSearch(SearchRequest, frozen=True, kw_only=True):
    """A search whose query leaves docs out."""

    without: tuple[Filters, ...] = ()

    @property
    def filters(self) -> Filters:
        """As of any request, with what is left out."""
        return QueryFilters(
            **{name: getattr(self, name) for name in QueryFilters.__struct_fields__}
        )
