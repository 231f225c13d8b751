"""How numbers are written: 99.45 %, 58.2 s."""


def percent(share: float) -> str:
    """Return a share in [0, 1] as "99.45 %"."""
    return f"{share * 100:.2f} %"


def duration(seconds: float) -> str:
    """Return "58.2 s", "3 min 07 s" or "1 h 02 min"."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
