// SPDX-License-Identifier: Apache-2.0
#include "core/trace/spans.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/os/clock.hpp"
#include "core/trace/trace_json.hpp"

namespace dist {

void Span::set_name(std::string_view text) noexcept {
  const std::size_t bytes = std::min(text.size(), sizeof name - 1);
  std::copy_n(text.data(), bytes, name);
  name[bytes] = '\0';
}

void SpanLog::add(const Span& span) noexcept {
  try {
    const std::scoped_lock lock(mutex_);
    if (spans_.size() < kMost) return spans_.push_back(span);
    spans_[oldest_] = span;
    oldest_ = (oldest_ + 1) % kMost;
  } catch (const std::bad_alloc&) {
  }
}

Status SpanLog::end(Span* span, const Status& status) noexcept {
  span->status = status.code();
  span->end_ns = steady_now_ns();
  add(*span);
  return status;
}

std::pmr::vector<Span> SpanLog::copy(Memory& memory) const {
  const std::scoped_lock lock(mutex_);
  std::pmr::vector<Span> all(spans_, &memory);
  std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(oldest_), all.end());
  return all;
}

void SpanTrace::add_row(const char* format, int number) {
  char label[48];
  std::snprintf(label, sizeof label, format, number);
  rows.emplace_back(label);
}

void write_spans(const SpanTrace& trace, TraceJson& json) {
  json.name("process_name", trace.process, 0, trace.name.c_str());
  for (std::size_t i = 0; i < trace.rows.size(); ++i) {
    json.name("thread_name", trace.process, static_cast<int64_t>(i), trace.rows[i].c_str());
  }
  for (const Span& each : trace.spans) {
    json.begin();
    json.text("ph", "X");
    json.text("cat", each.category);
    json.text("name", each.name);
    json.place(trace.process, each.row);
    json.time("ts", each.begin_ns);
    json.time("dur", each.end_ns - each.begin_ns);
    json.begin("args");
    if (each.id != Span::kNoId) json.number("id", each.id);
    json.text("status", status_name(each.status));
    json.time("waited_us", each.waited_ns);
    json.end();
    json.end();
  }
}

Status write_span_trace(const SpanTrace& trace, TextFn fn, void* user_data) {
  TextOut out(fn, user_data);
  TraceJson json(out);
  json.begin_events();
  write_spans(trace, json);
  json.end_events();
  out.flush();
  return kOk;
}

}  // namespace dist
