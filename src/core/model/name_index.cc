// SPDX-License-Identifier: Apache-2.0
// Draft's index of names: sorting them, and merging those of models that are sorted already.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/endian.h"
#include "core/model/state.h"

namespace weighbridge::core {
namespace {

// Eight bytes of a name as a number that sorts like the bytes. It tells nearly all names apart.
struct NameKey {
  std::uint64_t key = 0;
  std::uint32_t index = 0;
};
std::uint64_t prefix_key(std::string_view text) noexcept {
  if (text.size() >= 8) return base::load_be<std::uint64_t>(text.data());
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    key |= std::uint64_t{static_cast<unsigned char>(text[i])} << (56 - 8 * i);
  return key;
}

// LSD radix sort; a position where all keys agree costs one histogram.
void sort_by_key(std::span<NameKey> items, std::vector<NameKey>& scratch) {
  std::span<NameKey> from = items, to(scratch.data(), items.size());
  for (unsigned shift = 0; shift < 64; shift += 8) {
    std::array<std::size_t, 257> starts{};
    for (const NameKey& item : from) ++starts[(item.key >> shift & 0xFF) + 1];
    if (std::ranges::find(starts, from.size()) != starts.end()) continue;
    for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    for (const NameKey& item : from) to[starts[item.key >> shift & 0xFF]++] = item;
    std::swap(from, to);
  }
  if (from.data() != items.data()) std::ranges::copy(from, items.begin());
}

// Sorts by name, equal names by index. Names with equal keys are sorted again by the next eight bytes after their
// common prefix, so names are read rarely and no byte more than a few times. At the end, equal names have equal keys.
template <class Name> void sort_names(std::vector<NameKey>& items, Name name) {
  constexpr std::size_t kFew = 32;
  const auto less = [&](const NameKey& a, const NameKey& b) {
    if (a.key != b.key) return a.key < b.key;
    const int order = name(a.index).compare(name(b.index));
    return order != 0 ? order < 0 : a.index < b.index;
  };
  struct Group {
    std::size_t begin, end, shared;  // all begin with the same `shared` bytes
  };
  std::vector<Group> groups{{0, items.size(), 0}};
  std::vector<NameKey> scratch(items.size());
  while (!groups.empty()) {
    const Group group = groups.back();
    groups.pop_back();
    const std::span<NameKey> all = std::span(items).subspan(group.begin, group.end - group.begin);
    if (all.empty()) continue;
    const std::string_view first = name(all[0].index);
    std::size_t shared = first.size();
    for (const NameKey& item : all) {
      const std::string_view other = name(item.index);
      const std::size_t maximum = std::min(shared, other.size());
      shared = std::min(group.shared, maximum);
      while (shared < maximum && first[shared] == other[shared]) ++shared;
    }
    for (NameKey& item : all) item.key = prefix_key(name(item.index).substr(shared));
    if (std::ranges::is_sorted(all, less)) continue;
    sort_by_key(all, scratch);
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      while (end < all.size() && all[end].key == all[begin].key) ++end;
      // The end of a name and zero bytes give the same key, so compare lengths.
      if (end - begin <= kFew || end - begin == all.size())
        std::sort(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end),
                  less);
      else
        groups.push_back({group.begin + begin, group.begin + end, shared});
    }
  }
}

// Merges runs, each of which is sorted and has no equal names. Finds with doubling steps how long one run stays ahead
// of the others, so models whose names rarely alternate cost few comparisons. Calls `same` for neighbors with equal
// names. False if the runs alternate so often that sorting all names is faster.
template <class Name, class Same>
bool merge_runs(std::span<const std::uint32_t> all, std::span<const std::size_t> ends, Name name,
                std::vector<std::uint32_t>& merged, Same same) {
  constexpr std::size_t kWorthwhile = 8;  // tensors in a piece
  struct SortedRun {
    std::span<const std::uint32_t> rest;
    std::string_view first;
  };
  const auto after = [](const SortedRun& a, const SortedRun& b) {
    const int order = a.first.compare(b.first);
    return order != 0 ? order > 0 : a.rest[0] > b.rest[0];
  };
  std::vector<SortedRun> heap;
  for (std::size_t begin = 0; const std::size_t end : ends) {
    if (end > begin) heap.push_back({all.subspan(begin, end - begin), name(all[begin])});
    begin = end;
  }
  std::make_heap(heap.begin(), heap.end(), after);
  std::size_t pieces_left = all.size() / kWorthwhile + heap.size();
  merged.clear();
  merged.reserve(all.size());
  while (!heap.empty()) {
    if (pieces_left-- == 0) return false;
    std::pop_heap(heap.begin(), heap.end(), after);
    SortedRun run = heap.back();
    heap.pop_back();
    std::size_t taken = run.rest.size();
    if (!heap.empty()) {
      const SortedRun& next = heap.front();
      const auto precedes = [&](std::uint32_t i) {
        const int order = name(i).compare(next.first);
        return order != 0 ? order < 0 : i < next.rest[0];
      };
      std::size_t low = 1, high = 1;  // the first one does
      while (high < run.rest.size() && precedes(run.rest[high])) low = high + 1, high = 2 * high + 1;
      const auto unsure = run.rest.subspan(low, std::min(high, run.rest.size()) - low);
      taken =
          low + static_cast<std::size_t>(std::partition_point(unsure.begin(), unsure.end(), precedes) - unsure.begin());
    }
    if (!merged.empty() && name(merged.back()) == run.first) same(merged.back(), run.rest[0]);
    merged.insert(merged.end(), run.rest.begin(), run.rest.begin() + static_cast<std::ptrdiff_t>(taken));
    run.rest = run.rest.subspan(taken);
    if (run.rest.empty()) continue;
    run.first = name(run.rest[0]);
    heap.push_back(run);
    std::push_heap(heap.begin(), heap.end(), after);
  }
  return true;
}

}  // namespace

std::vector<std::pair<std::uint32_t, std::uint32_t>> Draft::index_names() {
  const std::size_t n = state_->tensors.size();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> duplicates;
  const auto name = [&](std::uint32_t i) { return state_->tensor_name(i); };
  const auto same = [&](std::uint32_t a, std::uint32_t b) { duplicates.emplace_back(a, b); };
  if (n == 0 || runs_.size() != n || !merge_runs(runs_, run_ends_, name, state_->by_name, same)) {
    duplicates.clear();
    std::vector<NameKey> items(n);
    for (std::uint32_t i = 0; i < n; ++i) items[i].index = i;
    sort_names(items, name);
    state_->by_name.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      state_->by_name[i] = items[i].index;
      if (i > 0 && items[i].key == items[i - 1].key && name(items[i].index) == name(items[i - 1].index))
        same(items[i - 1].index, items[i].index);
    }
  }
  std::sort(duplicates.begin(), duplicates.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return duplicates;
}

std::vector<std::uint32_t> order_of(std::span<const std::string_view> names) {
  std::vector<NameKey> items(names.size());
  for (std::uint32_t i = 0; i < items.size(); ++i) items[i].index = i;
  sort_names(items, [&](std::uint32_t i) { return names[i]; });
  std::vector<std::uint32_t> out(items.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = items[i].index;
  return out;
}

void Draft::forget_runs() noexcept {
  runs_.clear();
  run_ends_.clear();
}

void Draft::index_sorted_names() {
  state_->by_name.resize(state_->tensors.size());
  std::iota(state_->by_name.begin(), state_->by_name.end(), 0U);
}

}  // namespace weighbridge::core
