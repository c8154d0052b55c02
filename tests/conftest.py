"""What every test shares: Hypothesis profiles.

Rule: no JAX here; a test that needs it imports it. Every change is judged by the `ci` profile, whose
examples are the same on every machine; `make soak` looks further, with fresh ones.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "nightly",
    deadline=None,
    max_examples=2_000,
    stateful_step_count=120,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")
