# SPDX-License-Identifier: Apache-2.0
"""Nothing of the tree is put on the path: the tests are of the package that is installed, or that PYTHONPATH names."""
