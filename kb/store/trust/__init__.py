"""Whose folder is it? Which stores count: those that this user's kb made, or the user accepted."""

from kb.store.trust.folder import link_out, look_of
from kb.store.trust.list import TrustedHome, TrustList, trust_list
from kb.store.trust.verdict import Verdict, making, replacing, verdict_of

__all__ = [
    "TrustList",
    "TrustedHome",
    "Verdict",
    "link_out",
    "look_of",
    "making",
    "replacing",
    "trust_list",
    "verdict_of",
]
