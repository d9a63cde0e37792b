// SPDX-License-Identifier: Apache-2.0
// The standard headers that most sources include, compiled once where WEIGHBRIDGE_PCH is on. A source still includes
// what it uses: the release, which `make check` builds, is made without this.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
