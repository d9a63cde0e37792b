// SPDX-License-Identifier: Apache-2.0
// The compression function of FIPS 180-4, section 6.2.2, for sixteen messages at once, with AVX-512 or WebAssembly's
// vectors, and portably. Messages of similar length form a batch, because a batch takes as long as its longest message.
#include "codecs/checksum.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/cpu.h"
#include "base/endian.h"
#include "codecs/sha256_portable.h"

namespace weighbridge::codecs {
namespace {

// A batch takes about as long as class Sha256 for this many messages as long as its longest.
constexpr std::uint64_t kWorth = 8;

// Word i of every lane's state side by side.
struct alignas(64) State {
  std::uint32_t words[8][kShaLanes];
};
using Blocks = std::array<const std::byte*, kShaLanes>;  // each lane's next blocks
using Compress = void (*)(State&, const Blocks&, std::size_t blocks);

void compress_portable(State& state, const Blocks& from, std::size_t blocks) {
  for (std::size_t lane = 0; lane < kShaLanes; ++lane) {
    Sha256State one;
    for (std::size_t i = 0; i < one.size(); ++i) one[i] = state.words[i][lane];
    sha256_compress(one, from[lane], blocks);
    for (std::size_t i = 0; i < one.size(); ++i) state.words[i][lane] = one[i];
  }
}

#if defined(__x86_64__) || defined(__wasm_simd128__)
#define WB_VECTORS 1
// Compiler vectors instead of intrinsics: compilers turn these expressions into vprord and vpternlogd, or into
// WebAssembly's instructions, whose registers hold four lanes.
#if defined(__x86_64__)
#define WB_LANES __attribute__((target("avx512f,avx512bw"), always_inline)) inline
constexpr std::size_t kTogether = kShaLanes;
#else
#define WB_LANES __attribute__((always_inline)) inline
constexpr std::size_t kTogether = 4;
#endif
using Words = std::uint32_t __attribute__((vector_size(kTogether * sizeof(std::uint32_t))));

template <int N> WB_LANES void xor_rotated(Words& to, const Words& x) { to ^= x >> N | x << (32 - N); }

#if defined(__x86_64__)
using Octets = std::uint8_t __attribute__((vector_size(64)));
using Indices = std::make_index_sequence<16>;

template <std::size_t... I>
WB_LANES void load_rows(Words (&w)[16], const Blocks& from, std::size_t offset, std::index_sequence<I...>) {
  const auto row = [&](Words & to, const std::byte* data) __attribute__((target("avx512f,avx512bw"), always_inline)) {
    Octets raw;
    std::memcpy(&raw, data, sizeof raw);
    raw =
        __builtin_shufflevector(raw, raw, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 19, 18, 17, 16, 23, 22,
                                21, 20, 27, 26, 25, 24, 31, 30, 29, 28, 35, 34, 33, 32, 39, 38, 37, 36, 43, 42, 41, 40,
                                47, 46, 45, 44, 51, 50, 49, 48, 55, 54, 53, 52, 59, 58, 57, 56, 63, 62, 61, 60);
    std::memcpy(&to, &raw, sizeof to);
  };
  (row(w[I], from[I] + offset), ...);
}

// Transposes rows of one message each to rows of one word each: w[i][m] = w[m][i].
WB_LANES void transpose(Words (&w)[16]) {
  Words t[16];
  for (std::size_t i = 0; i < 16; i += 2) {
    const Words &a = w[i], &b = w[i + 1];
    t[i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    t[i + 1] = __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
  for (std::size_t i = 0; i < 16; i += 4)
    for (std::size_t j = 0; j < 2; ++j) {
      const Words &a = t[i + j], &b = t[i + j + 2];
      w[i + 2 * j] = __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      w[i + 2 * j + 1] = __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
  // Now w[4 * k + i] holds the words i, i + 4, i + 8 and i + 12 of the messages 4 * k to 4 * k + 3.
  for (std::size_t i = 0; i < 4; ++i) {
    Words pair[4];
    for (std::size_t k = 0; k < 2; ++k) {
      const Words &a = w[8 * k + i], &b = w[8 * k + 4 + i];
      pair[k] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
      pair[2 + k] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    }
    for (std::size_t k = 0; k < 2; ++k) {
      const Words &a = pair[2 * k], &b = pair[2 * k + 1];
      t[4 * k + i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
      t[4 * k + 8 + i] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    }
  }
  std::memcpy(&w, &t, sizeof w);
}

WB_LANES void load_words(Words (&w)[16], const Blocks& from, std::size_t, std::size_t offset) {
  load_rows(w, from, offset, Indices{});
  transpose(w);
}
#else
// Four words of four messages, in four columns.
WB_LANES void load_words(Words (&w)[16], const Blocks& from, std::size_t lane, std::size_t offset) {
  using Octets = std::uint8_t __attribute__((vector_size(16)));
  const auto row = [&](std::size_t l, std::size_t i) __attribute__((always_inline)) {
    Octets raw;
    std::memcpy(&raw, from[lane + l] + offset + 4 * i, sizeof raw);
    raw = __builtin_shufflevector(raw, raw, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    return reinterpret_cast<Words>(raw);
  };
  for (std::size_t i = 0; i < 16; i += 4) {
    const Words a = row(0, i), b = row(1, i), c = row(2, i), d = row(3, i);
    const Words ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Words ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
                cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    w[i] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    w[i + 1] = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    w[i + 2] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    w[i + 3] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
  }
}
#endif

// Round I. The eight variables change roles instead of moving; w[I % 16] is replaced by the word for sixteen rounds
// later.
template <std::size_t I> WB_LANES void one_round(Words (&v)[8], Words (&w)[16]) {
  const Words &a = v[(64 - I) % 8], &b = v[(65 - I) % 8], &c = v[(66 - I) % 8];
  const Words &e = v[(68 - I) % 8], &f = v[(69 - I) % 8], &g = v[(70 - I) % 8];
  Words &d = v[(67 - I) % 8], &h = v[(71 - I) % 8];
  Words sum1{}, sum0{};
  xor_rotated<6>(sum1, e);
  xor_rotated<11>(sum1, e);
  xor_rotated<25>(sum1, e);
  xor_rotated<2>(sum0, a);
  xor_rotated<13>(sum0, a);
  xor_rotated<22>(sum0, a);
  const Words first = h + (w[I % 16] + kSha256Round[I]) + ((e & f) | (~e & g)) + sum1;
  d += first;
  h = first + ((a & b) | (c & (a | b))) + sum0;
  if constexpr (I < 48) {
    const Words &x = w[(I + 1) % 16], &y = w[(I + 14) % 16];
    Words sigma0 = x >> 3, sigma1 = y >> 10;
    xor_rotated<7>(sigma0, x);
    xor_rotated<18>(sigma0, x);
    xor_rotated<17>(sigma1, y);
    xor_rotated<19>(sigma1, y);
    w[I % 16] += sigma0 + w[(I + 9) % 16] + sigma1;
  }
}

template <std::size_t... I> WB_LANES void all_rounds(Words (&v)[8], Words (&w)[16], std::index_sequence<I...>) {
  (one_round<I>(v, w), ...);
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw")))
#endif
void compress_vectors(State& state, const Blocks& from, std::size_t blocks) {
  for (std::size_t lane = 0; lane < kShaLanes; lane += kTogether) {
    Words sum[8];
    for (std::size_t i = 0; i < 8; ++i) std::memcpy(&sum[i], &state.words[i][lane], sizeof sum[i]);
    for (std::size_t block = 0; block < blocks; ++block) {
      Words v[8], w[16];
      load_words(w, from, lane, block * kSha256Block);
      std::memcpy(&v, &sum, sizeof v);
      all_rounds(v, w, std::make_index_sequence<64>{});
      for (std::size_t i = 0; i < 8; ++i) sum[i] += v[i];
    }
    for (std::size_t i = 0; i < 8; ++i) std::memcpy(&state.words[i][lane], &sum[i], sizeof sum[i]);
  }
}
#undef WB_LANES
#endif

bool has_vectors() noexcept {
#if defined(__x86_64__)
  return base::cpu_has(base::Cpu::avx512f, base::Cpu::avx512bw);
#elif defined(WB_VECTORS)
  return true;
#else
  return false;
#endif
}

Compress compress_of(ShaPath path) noexcept {
#if defined(WB_VECTORS)
  if (path != ShaPath::portable) return compress_vectors;
#endif
  static_cast<void>(path);
  return compress_portable;
}

// One message in a lane. Whole blocks come directly from the caller's pieces; data across a border and the padding go
// through a separate block.
class Lane {
 public:
  void begin(std::size_t message, std::span<const std::byte> prefix, std::uint64_t length) {
    message_ = message;
    piece_ = prefix;
    left_ = length;
    bits_ = (prefix.size() + length) * 8;
  }
  std::size_t message() const noexcept { return message_; }
  const std::byte* from() const noexcept { return from_; }
  std::size_t blocks() const noexcept { return blocks_; }
  bool is_done() const noexcept { return padded_ && blocks_ == 0; }
  void advance(std::size_t blocks) noexcept {
    from_ += blocks * kSha256Block;
    blocks_ -= blocks;
  }

  // Afterwards blocks() > 0. Not to be called for a finished lane.
  void feed(const NextBytes& next) {
    while (blocks_ == 0) {
      if (piece_.empty() && left_ > 0) {
        piece_ = next(message_);
        left_ -= piece_.size();
      } else if (used_ == 0 && piece_.size() >= kSha256Block) {
        offer(piece_.data(), piece_.size() / kSha256Block);
        piece_ = piece_.subspan(blocks_ * kSha256Block);
      } else if (piece_.empty()) {
        pad();
      } else {
        hold();
      }
    }
  }

 private:
  void offer(const std::byte* from, std::size_t blocks) noexcept {
    from_ = from;
    blocks_ = blocks;
  }
  void hold() noexcept {
    const std::size_t take = std::min(piece_.size(), kSha256Block - used_);
    std::memcpy(held_.data() + used_, piece_.data(), take);
    piece_ = piece_.subspan(take);
    used_ += take;
    if (used_ < kSha256Block) return;
    offer(held_.data(), 1);
    used_ = 0;
  }
  // One bit, zeros, and the length in bits as the last eight bytes of a block.
  void pad() noexcept {
    const std::size_t size = used_ < kSha256Block - 8 ? kSha256Block : 2 * kSha256Block;
    held_[used_] = std::byte{0x80};
    std::fill(held_.begin() + static_cast<std::ptrdiff_t>(used_ + 1), held_.end(), std::byte{0});
    base::store_be(held_.data() + size - 8, bits_);
    offer(held_.data(), size / kSha256Block);
    padded_ = true;
  }

  std::size_t message_ = 0, used_ = 0, blocks_ = 0;
  std::span<const std::byte> piece_;
  std::uint64_t left_ = 0, bits_ = 0;  // left_: not yet requested
  const std::byte* from_ = nullptr;
  bool padded_ = false;
  std::array<std::byte, 2 * kSha256Block> held_;
};

struct Job {
  std::span<const std::byte> prefix;
  std::span<const std::uint64_t> lengths;
  const NextBytes& next;
  std::span<Digest256> out;
};

Digest256 digest_of(const State& state, std::size_t lane) noexcept {
  Digest256 digest;
  for (std::size_t i = 0; i < 8; ++i) base::store_be(digest.data() + 4 * i, state.words[i][lane]);
  return digest;
}

// Hashes at most kShaLanes messages, in step as long as each has whole blocks.
void hash_batch(const Job& job, std::span<const std::size_t> messages, Compress compress) {
  State state;
  for (std::size_t i = 0; i < 8; ++i) std::fill_n(state.words[i], kShaLanes, kSha256Start[i]);
  std::array<Lane, kShaLanes> lanes;
  for (std::size_t l = 0; l < messages.size(); ++l) lanes[l].begin(messages[l], job.prefix, job.lengths[messages[l]]);
  for (std::size_t under_way = messages.size(); under_way > 0;) {
    std::size_t blocks = std::numeric_limits<std::size_t>::max();
    const std::byte* any = nullptr;
    for (Lane& lane : std::span(lanes).first(messages.size())) {
      if (lane.is_done()) continue;
      lane.feed(job.next);
      blocks = std::min(blocks, lane.blocks());
      any = lane.from();
    }
    // A lane without a message hashes another one's bytes; its result is ignored.
    Blocks from;
    for (std::size_t l = 0; l < kShaLanes; ++l)
      from[l] = l < messages.size() && !lanes[l].is_done() ? lanes[l].from() : any;
    compress(state, from, blocks);
    for (std::size_t l = 0; l < messages.size(); ++l) {
      if (lanes[l].is_done()) continue;
      lanes[l].advance(blocks);
      if (!lanes[l].is_done()) continue;
      job.out[lanes[l].message()] = digest_of(state, l);
      --under_way;
    }
  }
}

void hash_one(const Job& job, std::size_t message, Sha256& hash) {
  hash.reset();
  hash.update(job.prefix);
  for (std::uint64_t left = job.lengths[message]; left > 0;) {
    const auto piece = job.next(message);
    hash.update(piece);
    left -= piece.size();
  }
  job.out[message] = hash.finish();
}

// Whether the first and longest of these is short enough compared with the others.
bool is_worth(const Job& job, std::span<const std::size_t> messages) {
  const auto blocks = [&](std::size_t message) {
    return (job.prefix.size() + job.lengths[message] + 8) / kSha256Block + 1;
  };
  std::uint64_t sum = 0;
  for (const std::size_t message : messages) sum += blocks(message);
  return sum / kWorth >= blocks(messages.front());
}

}  // namespace

bool has(ShaPath path) noexcept { return path != ShaPath::vectors || has_vectors(); }

void sha256_each(std::span<const std::byte> prefix, std::span<const std::uint64_t> lengths, const NextBytes& next,
                 std::span<Digest256> out, ShaPath path) {
  const Job job{prefix, lengths, next, out};
  const bool forced = path == ShaPath::portable || (path == ShaPath::vectors && has_vectors());
  const bool lanes = forced || (path == ShaPath::automatic && has_vectors());
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  std::optional<Sha256> single;
  for (std::span<const std::size_t> rest(order); !rest.empty();) {
    const auto batch = rest.first(std::min(rest.size(), kShaLanes));
    if (forced || (lanes && is_worth(job, batch))) {
      hash_batch(job, batch, compress_of(path));
      rest = rest.subspan(batch.size());
    } else {
      if (!single) single.emplace();
      hash_one(job, rest.front(), *single);
      rest = rest.subspan(1);
    }
  }
}

void sha256_each(std::span<const std::byte> prefix, std::span<const std::span<const std::byte>> messages,
                 std::span<Digest256> out, ShaPath path) {
  std::vector<std::uint64_t> lengths;
  lengths.reserve(messages.size());
  for (const auto message : messages) lengths.push_back(message.size());
  sha256_each(
      prefix, lengths, [&](std::size_t i) { return messages[i]; }, out, path);
}

}  // namespace weighbridge::codecs
