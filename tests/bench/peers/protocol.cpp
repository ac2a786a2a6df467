// SPDX-License-Identifier: Apache-2.0
// Names that a table prints may contain blanks, so they are stored in lists instead of words.
#include "tests/bench/peers/protocol.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace bench::peers {
namespace {

template <class T>
struct Word {
  T value;
  const char* text;
};

constexpr std::array<Word<Operation>, 8> kOperations{{{Operation::kAllReduce, "all_reduce"},
                                                      {Operation::kBarrier, "barrier"},
                                                      {Operation::kRun, "run"},
                                                      {Operation::kPush, "push"},
                                                      {Operation::kPull, "pull"},
                                                      {Operation::kClosure, "closure"},
                                                      {Operation::kClosurePush, "closure_push"},
                                                      {Operation::kEncode, "encode"}}};
constexpr std::array<Word<dist_dtype>, 4> kTypes{
    {{dist_dtype{}, "-"}, {DIST_F32, "f32"}, {DIST_F16, "f16"}, {DIST_BF16, "bf16"}}};
constexpr std::array<Word<Layout>, 3> kLayouts{{{Layout::kInPlace, "in_place"},
                                                {Layout::kOutOfPlace, "out_of_place"},
                                                {Layout::kOneOutput, "one_output"}}};
constexpr std::array<Word<Pace>, 4> kPaces{
    {{Pace::kHot, "hot"}, {Pace::kPaused, "paused"}, {Pace::kAsleep, "asleep"}, {Pace::kWork, "work"}}};

template <class T, size_t N>
const char* text_of(const std::array<Word<T>, N>& words, T value) {
  for (const auto& word : words) {
    if (word.value == value) return word.text;
  }
  return "?";
}

template <class T, size_t N>
bool find(const std::array<Word<T>, N>& words, const std::string& text, T& value) {
  for (const auto& word : words) {
    if (text != word.text) continue;
    value = word.value;
    return true;
  }
  return false;
}

}  // namespace

Words split(const std::string& line) {
  Words words;
  for (size_t begin = 0, end; begin <= line.size(); begin = end + 1) {
    end = std::min(line.find('\t', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
  }
  return words;
}

std::string join(const Words& words) {
  std::string line;
  for (const std::string& word : words) line += (&word == &words.front() ? "" : "\t") + word;
  return line;
}

std::string to_line(const Request& request) {
  return join({"measure", request.form, text_of(kOperations, request.operation),
               text_of(kTypes, request.dtype), std::to_string(request.bytes),
               text_of(kLayouts, request.layout), text_of(kPaces, request.plan.pace),
               std::to_string(request.plan.iterations), std::to_string(request.plan.batches)});
}

std::optional<Request> parse_request(const std::string& line) {
  const Words words = split(line);
  Request request;
  if (words.size() != 9 || words[0] != "measure" || !find(kOperations, words[2], request.operation) ||
      !find(kTypes, words[3], request.dtype) || !find(kLayouts, words[5], request.layout) ||
      !find(kPaces, words[6], request.plan.pace)) {
    return std::nullopt;
  }
  request.form = words[1];
  request.bytes = std::strtoull(words[4].c_str(), nullptr, 10);
  request.plan.iterations = std::atoi(words[7].c_str());
  request.plan.batches = std::atoi(words[8].c_str());
  return request;
}

}  // namespace bench::peers
