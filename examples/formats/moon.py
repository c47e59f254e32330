"""When to sow by the moon."""


def is_waxing(age_days: float) -> bool:
    """Whether the moon grows, which gardeners want for leaf crops."""
    return age_days < 14.77
