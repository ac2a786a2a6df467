// SPDX-License-Identifier: Apache-2.0
// TraceJson: writes the elements of Chrome's trace-event format.
#pragma once

#include <rapidjson/writer.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "core/base/text_out.hpp"

namespace dist {

class TraceJson {
 public:
  explicit TraceJson(TextOut& out) : out_(out), pool_(buffer_, sizeof buffer_), json_(out, &pool_, kDepth) {}
  TraceJson(const TraceJson&) = delete;
  TraceJson& operator=(const TraceJson&) = delete;

  // begin_events() and end_events() enclose all events.
  void begin_events() {
    json_.StartObject();
    text("displayTimeUnit", "ns");
    key("traceEvents");
    json_.StartArray();
  }
  void end_events() {
    json_.EndArray();
    json_.EndObject();
    out_.Put('\n');
  }

  void begin() { json_.StartObject(); }
  void begin(const char* name) {
    key(name);
    json_.StartObject();
  }
  void end() { json_.EndObject(); }
  void begin_list(const char* name) {
    key(name);
    json_.StartArray();
  }
  void item(int value) { json_.Int(value); }
  void end_list() { json_.EndArray(); }

  void text(const char* name, const char* value) {
    key(name);
    json_.String(value);
  }
  void number(const char* name, int64_t value) {
    key(name);
    json_.Int64(value);
  }
  // The format uses microseconds.
  void time(const char* name, int64_t ns) {
    char digits[32];
    const int length = std::snprintf(digits, sizeof digits, "%lld.%03lld", static_cast<long long>(ns / 1000),
                                     static_cast<long long>(ns % 1000));
    key(name);
    json_.RawValue(digits, static_cast<std::size_t>(length), rapidjson::kNumberType);
  }
  void place(int64_t process, int64_t thread) {
    number("pid", process);
    number("tid", thread);
  }
  // `what` is "process_name" or "thread_name".
  void name(const char* what, int64_t process, int64_t thread, const char* value) {
    begin();
    text("ph", "M");
    text("name", what);
    place(process, thread);
    begin("args");
    text("name", value);
    end();
    end();
  }

 private:
  // The writer keeps its nesting stack in memory of this allocator. The buffer is larger than needed, so
  // nothing is allocated.
  using Pool = rapidjson::MemoryPoolAllocator<>;
  static constexpr std::size_t kDepth = 8;

  void key(const char* name) { json_.Key(name); }

  TextOut& out_;
  alignas(std::max_align_t) char buffer_[1024];
  Pool pool_;
  rapidjson::Writer<TextOut, rapidjson::UTF8<>, rapidjson::UTF8<>, Pool> json_;
};

}  // namespace dist
