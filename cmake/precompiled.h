// SPDX-License-Identifier: Apache-2.0
// The standard headers that most sources include, compiled once if WEIGHBRIDGE_PCH is on. Sources still include what
// they use, because the builds for the browser and for the released wheels do not use this header.
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
