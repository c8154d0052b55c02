"""How far a redrive left the recorded schedule: counts of what makes its figures an estimate (J17)."""

from msgspec import Struct


class Strayed(Struct):
    """One rank's counts, or those of several."""

    waited: int = 0
    """Requests that were admitted later than in the record."""
    pushed_out: int = 0
    """Retractions that the record has not."""
    spared: int = 0
    """Recorded retractions for which there was no need."""
    refused: int = 0
    """Requests that can never fit."""
    unended: int = 0
    """Requests that still waited when the schedule was through."""
    hit_otherwise: int = 0
    """Admissions that found more or less than in the record."""
    unknown_jobs: int = 0
    """Requests with pages whose key nobody told."""
    unknown_pages: int = 0
    """Those pages, of the recorded size; keys of their own were made up for them."""
    turned_down: int = 0
    """Commands that the cache refused."""
    unkept: int = 0
    """Chunks that could not be kept for want of state slots."""

    def add(self, other: "Strayed") -> None:
        """Another rank's on top."""
        for field in self.__struct_fields__:
            setattr(self, field, getattr(self, field) + getattr(other, field))
