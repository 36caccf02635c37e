"""What all tests share."""

from hypothesis import HealthCheck, settings

# Machines differ: a slow one must not fail a property. Fewer examples by default keep the unit tier near a minute.
settings.register_profile("default", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")
