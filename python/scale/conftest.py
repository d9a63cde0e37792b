# SPDX-License-Identifier: Apache-2.0
"""Ray for the tests, and the models of python/tests."""
import importlib.util
import os
import pathlib
import signal
import sys

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_worker_niceness", "5")
os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")
os.environ["WEIGHBRIDGE_RAY_TESTS"] = str(os.getpid())

import pytest  # noqa: E402
from processes import left_running, stop  # noqa: E402

_SPEC = importlib.util.spec_from_file_location("models", pathlib.Path(__file__).parents[1] / "tests/conftest.py")
_MODELS = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODELS)
encoder_folder = _MODELS.encoder_folder


@pytest.fixture
def ray():
    """A local Ray of two processors, which the next test may find running: starting it takes seconds."""
    import ray

    if not ray.is_initialized():
        try:
            ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False, logging_level="ERROR")
        except Exception:  # too slow a start leaves processes, which the next test would find
            for pid, _ in left_running():
                os.kill(pid, signal.SIGKILL)
            raise
        ray.cloudpickle.register_pickle_by_value(sys.modules["test_jobs"]) if "test_jobs" in sys.modules else None
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray


@pytest.fixture
def no_ray():
    """No Ray before and after the test, which starts its own."""
    stop()
    yield
    stop()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left():
    yield
    stop()
