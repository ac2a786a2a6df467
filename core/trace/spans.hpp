// SPDX-License-Identifier: Apache-2.0
// Spans: what a server or a coordinator has done, and when, for traces. Unlike the flight recorder, which
// replicas write without a lock, a span log can be written by any thread. It is meant for operations that
// take at least some microseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/trace/text.hpp"

namespace dist {

class TraceJson;

struct Span {
  static constexpr int64_t kNoId = -1;

  const char* category = "";  // a literal
  int64_t id = kNoId;         // of the closure that it is for
  int32_t row = 0;
  dist_status status = DIST_OK;
  int64_t waited_ns = 0;  // before it began
  int64_t begin_ns = 0;   // the steady clock's
  int64_t end_ns = 0;
  char name[40] = {};

  // Cut where it is too long.
  void set_name(std::string_view text) noexcept;
};

// The latest spans. Safe from any thread. Once there are kMost of them, writing one takes no memory.
class SpanLog {
 public:
  static constexpr std::size_t kMost = 16'384;

  explicit SpanLog(Memory& memory) : spans_(&memory) {}
  // Of more than kMost the oldest is forgotten, and without memory this one.
  void add(const Span& span) noexcept;
  // Adds it: it ends now, with this status, which is given back.
  Status end(Span* span, const Status& status) noexcept;
  std::pmr::vector<Span> copy(Memory& memory) const;

 private:
  mutable std::mutex mutex_;
  std::pmr::vector<Span> spans_;  // a ring, once it is full
  std::size_t oldest_ = 0;
};

// The spans of one process, and how a trace calls it and its rows. No process of dist_write_trace(), whose number is a worker's,
// has one of these numbers.
struct SpanTrace {
  static constexpr int64_t kCoordinator = 1'000'000;
  static constexpr int64_t kFirstPs = 2'000'000;
  static constexpr int64_t kFirstWorker = 3'000'000;
  static constexpr int64_t kNobody = 4'000'000;  // a server that no coordinator has told what it is

  explicit SpanTrace(Memory& memory) : name(&memory), rows(&memory), spans(&memory) {}
  void add_row(const char* format, int number);

  int64_t process = kNobody;
  std::pmr::string name;
  std::pmr::vector<std::pmr::string> rows;
  std::pmr::vector<Span> spans;
};

// As events of a trace.
void write_spans(const SpanTrace& trace, TraceJson& json);
// As a whole one, to the host's callback.
Status write_span_trace(const SpanTrace& trace, TextFn fn, void* user_data);

}  // namespace dist
