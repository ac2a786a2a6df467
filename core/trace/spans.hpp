// SPDX-License-Identifier: Apache-2.0
// Spans: what a server or a coordinator has done, and when, for traces. Replicas write to the flight recorder
// without a lock; a span log has a lock, so that any thread can write to it. It is meant for operations that
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
#include "core/base/text_out.hpp"

namespace dist {

class TraceJson;

struct Span {
  static constexpr int64_t kNoId = -1;

  const char* category = "";  // a string literal
  int64_t id = kNoId;         // id of the closure
  int32_t row = 0;
  dist_status status = DIST_OK;
  int64_t waited_ns = 0;  // before it began
  int64_t begin_ns = 0;   // on the steady clock
  int64_t end_ns = 0;
  char name[40] = {};

  // Truncates a long name.
  void set_name(std::string_view text) noexcept;
};

// The latest spans. Thread-safe. Once it holds kMost spans, adding one allocates nothing.
class SpanLog {
 public:
  static constexpr std::size_t kMost = 16'384;

  explicit SpanLog(Memory& memory) : spans_(&memory) {}
  // If the log is full, drops the oldest span. If no memory is left, drops this one.
  void add(const Span& span) noexcept;
  // Adds the span with the current time as its end and with this status. Returns the status.
  Status end(Span* span, const Status& status) noexcept;
  std::pmr::vector<Span> copy(Memory& memory) const;

 private:
  mutable std::mutex mutex_;
  std::pmr::vector<Span> spans_;  // a ring once it is full
  std::size_t oldest_ = 0;
};

// The spans of one process, and the names of the process and of its rows in a trace. The number of such a
// process differs from those in dist_strategy_write_trace(), which are worker numbers.
struct SpanTrace {
  static constexpr int64_t kCoordinator = 1'000'000;
  static constexpr int64_t kFirstPs = 2'000'000;
  static constexpr int64_t kFirstWorker = 3'000'000;
  static constexpr int64_t kNobody = 4'000'000;  // a server that no coordinator has contacted

  explicit SpanTrace(Memory& memory) : name(&memory), rows(&memory), spans(&memory) {}
  void add_row(const char* format, int number);

  int64_t process = kNobody;
  std::pmr::string name;
  std::pmr::vector<std::pmr::string> rows;
  std::pmr::vector<Span> spans;
};

// Writes the spans as events of a trace.
void write_spans(const SpanTrace& trace, TraceJson& json);
// Writes a complete trace to the host's callback.
Status write_span_trace(const SpanTrace& trace, TextFn fn, void* user_data);

}  // namespace dist
