// SPDX-License-Identifier: Apache-2.0
#include "core/coordinator/write_spans.hpp"

#include <rapidjson/writer.h>

#include <cstdio>

#include "core/base/status.hpp"

namespace dist {
namespace {

using Json = rapidjson::Writer<TextOut>;

// The format counts in microseconds.
void put_time(Json& json, const char* key, int64_t ns) {
  char digits[32];
  const int length = std::snprintf(digits, sizeof digits, "%lld.%03lld", static_cast<long long>(ns / 1000),
                                   static_cast<long long>(ns % 1000));
  json.Key(key);
  json.RawValue(digits, static_cast<std::size_t>(length), rapidjson::kNumberType);
}

void put_name(Json& json, const char* what, int row, const char* name) {
  json.StartObject();
  json.Key("ph");
  json.String("M");
  json.Key("name");
  json.String(what);
  json.Key("pid");
  json.Int(0);
  json.Key("tid");
  json.Int(row);
  json.Key("args");
  json.StartObject();
  json.Key("name");
  json.String(name);
  json.EndObject();
  json.EndObject();
}

}  // namespace

void write_spans(std::span<const ClosureSpan> spans, int num_workers, TextOut& out) {
  Json json(out);
  json.StartObject();
  json.Key("displayTimeUnit");
  json.String("ns");
  json.Key("traceEvents");
  json.StartArray();
  put_name(json, "process_name", 0, "libdist coordinator");
  char label[48];
  for (int i = 0; i < num_workers; ++i) {
    std::snprintf(label, sizeof label, "worker %d", i);
    put_name(json, "thread_name", i, label);
  }
  put_name(json, "thread_name", num_workers, "of no worker");
  for (const ClosureSpan& each : spans) {
    const bool sent = each.sent_ns != 0 && each.worker >= 0;
    const int64_t begin = sent ? each.sent_ns : each.scheduled_ns;
    json.StartObject();
    json.Key("ph");
    json.String("X");
    json.Key("name");
    json.String(each.name);
    json.Key("cat");
    json.String("closure");
    json.Key("pid");
    json.Int(0);
    json.Key("tid");
    json.Int(sent ? each.worker : num_workers);
    put_time(json, "ts", begin);
    put_time(json, "dur", each.ended_ns - begin);
    json.Key("args");
    json.StartObject();
    json.Key("id");
    json.Int64(each.id);
    json.Key("status");
    json.String(status_name(each.status));
    put_time(json, "waited_us", begin - each.scheduled_ns);
    json.EndObject();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  out.Put('\n');
}

}  // namespace dist
