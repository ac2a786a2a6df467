// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/more_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <random>
#include <utility>

namespace bench {
namespace {

std::vector<float> random_values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> magnitude(1.0f, 2.0f);
  std::vector<float> values(count);
  for (float& value : values) value = (random() % 2 == 0 ? -1.0f : 1.0f) * magnitude(random);
  return values;
}

// Convolutions without bias, each with a batch normalization, as in torchvision's and Keras's models.
std::vector<size_t> resnet50() {
  std::vector<size_t> counts;
  const auto convolution = [&](size_t in, size_t out, size_t width) {
    for (const size_t count : {in * out * width * width, out, out}) counts.push_back(count);
  };
  convolution(3, 64, 7);
  size_t in = 64;
  const size_t blocks[] = {3, 4, 6, 3};
  for (size_t stage = 0; stage < 4; ++stage) {
    const size_t width = size_t{64} << stage, out = 4 * width;
    for (size_t block = 0; block < blocks[stage]; ++block) {
      convolution(in, width, 1);
      convolution(width, width, 3);
      convolution(width, out, 1);
      if (block == 0) convolution(in, out, 1);
      in = out;
    }
  }
  counts.push_back(2048 * 1000);
  counts.push_back(1000);
  return counts;
}

std::vector<size_t> bert_base() {
  constexpr size_t kHidden = 768;
  std::vector<size_t> counts{30522 * kHidden, 512 * kHidden, 2 * kHidden, kHidden, kHidden};
  const auto add = [&](std::initializer_list<size_t> more) {
    for (const size_t count : more) counts.push_back(count);
  };
  for (int layer = 0; layer < 12; ++layer) {
    for (int matrix = 0; matrix < 4; ++matrix) add({kHidden * kHidden, kHidden});
    add({kHidden, kHidden, kHidden * 4 * kHidden, 4 * kHidden, 4 * kHidden * kHidden, kHidden, kHidden,
         kHidden});
  }
  add({kHidden * kHidden, kHidden});
  return counts;
}

}  // namespace

const char* network_name(Network network) {
  return network == Network::kResNet50 ? "resnet-50" : "bert-base";
}

std::vector<size_t> tensor_counts(Network network, int share) {
  std::vector<size_t> counts = network == Network::kResNet50 ? resnet50() : bert_base();
  for (size_t& count : counts) count = std::max<size_t>(1, count / static_cast<size_t>(share));
  return counts;
}

DataList::DataList(const std::vector<size_t>& counts, int replicas) {
  for (const size_t count : counts) {
    tensors_.push_back(std::make_unique<Data>(DIST_F32, count * sizeof(float), replicas, Layout::kInPlace));
    counts_.push_back(static_cast<int64_t>(count));
  }
}

std::vector<dist_tensor> DataList::views(int replica) const {
  std::vector<dist_tensor> views;
  for (size_t t = 0; t < size(); ++t)
    views.push_back({tensors_[t]->in(replica), DIST_F32, 1, &counts_[t], nullptr});
  return views;
}

size_t DataList::bytes() const {
  size_t bytes = 0;
  for (const auto& tensor : tensors_) bytes += tensor->bytes();
  return bytes;
}

bool DataList::alike() const {
  return std::all_of(tensors_.begin(), tensors_.end(),
                     [&](const auto& tensor) { return tensor->count() == tensors_[0]->count(); });
}

void DataList::check_result(size_t tensor, const void* result) noexcept {
  const size_t before = tensors_[tensor]->wrong();
  tensors_[tensor]->check_result(result);
  count_wrong(tensors_[tensor]->wrong() - before);
}

void DataList::expect(int iterations) {
  for (const auto& tensor : tensors_) tensor->expect(iterations);
}
void DataList::reset(int replica) noexcept {
  for (const auto& tensor : tensors_) tensor->reset(replica);
}
void DataList::check(int replica, int iterations) noexcept {
  for (const auto& tensor : tensors_) {
    const size_t before = tensor->wrong();
    tensor->check(replica, iterations);
    count_wrong(tensor->wrong() - before);
  }
}

// ---- Collectives other than all_reduce, and sums of wide range ----

Exchanged::Exchanged(std::vector<Buffers> replicas) {
  for (Buffers& buffers : replicas) {
    std::vector<Buffer> in;
    for (size_t piece = 0; piece < buffers.pieces; ++piece)
      in.push_back(allocate(buffers.start.size() / buffers.pieces * sizeof(float)));
    Buffer out = allocate(buffers.expected.size() * sizeof(float));
    replicas_.push_back({std::move(buffers), std::move(in), std::move(out)});
  }
}

void Exchanged::reset(int replica) noexcept {
  const std::vector<float>& start = at(replica).buffers.start;
  const size_t count = in_count(replica);
  for (size_t piece = 0; piece < pieces(replica); ++piece)
    std::memcpy(in(replica, piece), start.data() + piece * count, count * sizeof(float));
  std::memset(out(replica), 0xff, out_count(replica) * sizeof(float));
}

void Exchanged::check(int replica, int) noexcept {
  const std::vector<float>& expected = at(replica).buffers.expected;
  count_wrong(std::memcmp(out(replica), expected.data(), expected.size() * sizeof(float)) != 0);
}

namespace {

// Sums pairs of contributions, then pairs of these, and so on. Their number must be a power of two.
std::vector<float> pairwise(const std::vector<Exchanged::Buffers>& buffers, size_t contributions,
                            size_t count) {
  std::vector<std::vector<float>> level;
  for (const Exchanged::Buffers& buffer : buffers) {
    for (size_t j = 0; j < contributions; ++j) {
      const float* const first = buffer.start.data() + j * count;
      level.emplace_back(first, first + count);
    }
  }
  for (; level.size() > 1; level.resize(level.size() / 2)) {
    for (size_t k = 0; k < level.size() / 2; ++k) {
      for (size_t i = 0; i < count; ++i) level[k][i] = level[2 * k][i] + level[2 * k + 1][i];
    }
  }
  return level[0];
}

}  // namespace

std::unique_ptr<Exchanged> wide_range_sum(size_t count, int replicas, int contributions, int exponents,
                                          dist_numerics numerics) {
  // A sum in units of 2^-72 fits into 128 bits, and converting it to float rounds once.
  __extension__ using Wide = __int128;
  constexpr int kUnit = 72;
  constexpr float kSmallest = 0x1p-48f;  // a multiple of 2^-72, like every larger float
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(static_cast<float>(-exponents),
                                                 static_cast<float>(exponents));
  std::vector<Exchanged::Buffers> buffers(static_cast<size_t>(replicas));
  std::vector<float> ordered(count, 0.0f);
  std::vector<Wide> units(count, 0);
  for (Exchanged::Buffers& buffer : buffers) {
    buffer.pieces = static_cast<size_t>(contributions);
    for (int j = 0; j < contributions; ++j) {
      for (size_t i = 0; i < count; ++i) {
        float value = 0;
        while (std::fabs(value) < kSmallest) value = normal(random) * std::exp2(exponent(random));
        buffer.start.push_back(value);
        ordered[i] += value;  // from 0, so the first one is unchanged
        units[i] += static_cast<Wide>(std::ldexp(static_cast<double>(value), kUnit));
      }
    }
  }
  if (numerics == DIST_NUMERICS_REPRODUCIBLE) {
    for (size_t i = 0; i < count; ++i) ordered[i] = std::ldexp(static_cast<float>(units[i]), -kUnit);
  }
  if (numerics == DIST_NUMERICS_TREE) ordered = pairwise(buffers, static_cast<size_t>(contributions), count);
  for (Exchanged::Buffers& buffer : buffers) buffer.expected = ordered;
  return std::make_unique<Exchanged>(std::move(buffers));
}

const char* handing_name(Handing handing) {
  switch (handing) {
    case Handing::kAllGather: return "all_gather";
    case Handing::kReduceScatter: return "reduce_scatter";
    case Handing::kBroadcast: return "broadcast";
    case Handing::kAllToAll: return "all_to_all";
    case Handing::kScatter: return "scatter";
    case Handing::kScan: return "scan";
  }
  return "?";
}

std::unique_ptr<Exchanged> handed(Handing handing, size_t bytes, int replicas) {
  const auto size = static_cast<size_t>(replicas);
  const bool uncut = handing == Handing::kBroadcast || handing == Handing::kScan;
  const size_t part = bytes / sizeof(float) / (uncut ? 1 : size), whole = part * (uncut ? 1 : size);
  std::vector<Exchanged::Buffers> all(size);
  for (size_t r = 0; r < size; ++r) {
    const size_t count = handing == Handing::kAllGather ? part : whole;
    all[r].start = random_values(count, static_cast<uint32_t>(r) + 1);
  }
  for (size_t r = 0; r < size; ++r) {
    const bool reduced = handing == Handing::kReduceScatter;
    std::vector<float>& expected = all[r].expected;
    if (handing == Handing::kBroadcast) {
      expected = all[0].start;
      continue;
    }
    if (handing == Handing::kScatter) {
      expected.assign(all[0].start.begin() + static_cast<std::ptrdiff_t>(r * part),
                      all[0].start.begin() + static_cast<std::ptrdiff_t>((r + 1) * part));
      continue;
    }
    if (handing == Handing::kScan) {
      expected = r == 0 ? all[0].start : all[r - 1].expected;
      for (size_t i = 0; i < whole && r != 0; ++i) expected[i] += all[r].start[i];
      continue;
    }
    expected.resize(reduced ? part : whole, 0.0f);
    for (size_t p = 0; p < size; ++p) {
      const float* const from = all[p].start.data() + (handing == Handing::kAllGather ? 0 : r * part);
      float* const to = expected.data() + (reduced ? 0 : p * part);
      for (size_t i = 0; i < part; ++i) to[i] += from[i];  // from 0, so the first one is unchanged
    }
  }
  return std::make_unique<Exchanged>(std::move(all));
}

}  // namespace bench
