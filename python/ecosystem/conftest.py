# SPDX-License-Identifier: Apache-2.0
"""Puts weighbridge.safetensors in the place of safetensors, before anything imports that. tools/test-torch.sh runs with it the tests of this
folder, and safetensors' own tests, unchanged."""
import importlib
import sys

import weighbridge.safetensors as ours

sys.modules["safetensors"] = ours
for name in ("numpy", "torch", "flax", "mlx", "tensorflow", "paddle"):
    try:
        sys.modules[f"safetensors.{name}"] = importlib.import_module(f"weighbridge.safetensors.{name}")
    except ImportError:
        pass  # the framework is not installed
