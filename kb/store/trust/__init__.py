"""Which homes does kb trust? Those that this user's kb made, or the user accepted."""

from kb.store.trust.decision import (
    TrustDecision,
    decide_trust,
    trusting_new_store,
    trusting_replaced_store,
)
from kb.store.trust.folder import escaping_link, ownership_problem
from kb.store.trust.trusted_homes import TrustedHome, TrustList, trust_list

__all__ = [
    "TrustDecision",
    "TrustList",
    "TrustedHome",
    "decide_trust",
    "escaping_link",
    "ownership_problem",
    "trust_list",
    "trusting_new_store",
    "trusting_replaced_store",
]
