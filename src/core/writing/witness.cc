// SPDX-License-Identifier: Apache-2.0
// The hashes of blocks, with a salt, so that nobody can prepare other bytes of the same hash.
#include "core/model/view.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/checksum.h"
#include "core/model/state.h"
#include "io/forwarding_source.h"
#include "io/os.h"
#include "weighbridge/place.h"

namespace weighbridge::core {
namespace {

constexpr std::uint64_t kBlock = std::uint64_t{64} << 10;

class WitnessedSource final : public io::InterposedSource {
 public:
  explicit WitnessedSource(std::shared_ptr<const Source> source)
      : InterposedSource(std::move(source)), id_(next_id()), seen_(base::to_size((of().size() + kBlock - 1) / kBlock)) {
    if (!io::os::random_bytes(std::as_writable_bytes(std::span(salt_))))
      base::io_error("read", "the system gives no random numbers", errno);
  }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!base::fits(offset, out.size(), size())) return of().read_at(offset, out);  // which refuses it
    while (!out.empty()) {
      const std::uint64_t block = offset / kBlock, before = offset % kBlock;
      std::size_t take = 0;
      if (before == 0 && out.size() >= length_of(block)) {
        // All blocks that `out` covers, with one call.
        for (std::uint64_t at = block; take < out.size() && out.size() - take >= length_of(at); ++at)
          take += length_of(at);
        of().read_at(offset, out.first(take));
        for (std::size_t done = 0; done < take; done += kBlock)
          confirm(block + done / kBlock, out.subspan(done, std::min<std::size_t>(kBlock, take - done)));
      } else {
        const std::span<const std::byte> whole = held(block);
        take = std::min<std::size_t>(out.size(), whole.size() - base::to_size(before));
        std::memcpy(out.data(), whole.data() + before, take);
      }
      offset += take;
      out = out.subspan(take);
    }
  }

 private:
  struct Held {  // the last block of which this thread read a part
    std::uint64_t source = 0, block = 0;
    std::vector<std::byte> bytes{};
  };

  static std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
  std::size_t length_of(std::uint64_t block) const noexcept {
    return static_cast<std::size_t>(std::min(kBlock, size() - block * kBlock));
  }

  std::span<const std::byte> held(std::uint64_t block) const {
    static thread_local Held last;
    if (last.source == id_ && last.block == block) return last.bytes;
    last.source = 0;
    last.bytes.resize(length_of(block));
    of().read_at(block * kBlock, last.bytes);
    confirm(block, last.bytes);
    last.source = id_;
    last.block = block;
    return last.bytes;
  }

  void confirm(std::uint64_t block, std::span<const std::byte> bytes) const {
    static thread_local codecs::Xxh3_128 state;
    state.reset();
    state.update(std::as_bytes(std::span(salt_)));
    state.update(bytes);
    const codecs::Hash128 hash = state.finish();
    const std::lock_guard lock(mutex_);
    std::optional<codecs::Hash128>& seen = seen_[base::to_size(block)];
    if (!seen) seen = hash;
    if (*seen == hash) return;
    base::io_error_of(name(), "changed",
                      "the file changed while it was read: the bytes from " + std::to_string(block * kBlock) +
                          " on are not those that were checked");
  }

  const std::uint64_t id_;
  std::array<unsigned char, 16> salt_{};
  mutable std::mutex mutex_;
  mutable std::vector<std::optional<codecs::Hash128>> seen_;
};

}  // namespace

std::shared_ptr<const Source> witnessed(std::shared_ptr<const Source> of) {
  return std::make_shared<const WitnessedSource>(std::move(of));
}

Model witnessed(const Model& model) {
  const State* const state = Access::state(model);
  if (state == nullptr) return model;
  std::unordered_map<const Source*, std::shared_ptr<const Source>> known;
  const auto replace = [&](std::shared_ptr<const Source>& source) {
    std::shared_ptr<const Source>& made = known[source.get()];
    if (!made) made = witnessed(source);
    source = made;
  };
  // Rules check the member models, the conversion copies this one: both must read the same witnessed sources.
  const std::function<Model(const State&)> rebuilt = [&](const State& of) {
    auto copy = std::make_shared<State>(of);
    for (auto& source : copy->sources) replace(source);
    if (of.composition) {
      auto composition = std::make_shared<Composition>(*of.composition);
      for (Model& each : composition->models)
        if (Access::state(each) != nullptr) each = rebuilt(*Access::state(each));
      copy->composition = std::move(composition);
    }
    return Access::model(std::move(copy));
  };
  return rebuilt(*state);
}

}  // namespace weighbridge::core
