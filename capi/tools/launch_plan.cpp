// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/launch_plan.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstring>

namespace dist::launch {
namespace {

void add_worker(const Options& options, std::string address, bool is_local, std::vector<PlannedTask>* tasks) {
  const auto place = static_cast<int32_t>(tasks->size());
  if (!options.chief) {
    tasks->push_back({"worker", place, std::move(address), is_local});
  } else if (place == 0) {
    tasks->push_back({"chief", 0, std::move(address), is_local});
  } else {
    tasks->push_back({"worker", place - 1, std::move(address), is_local});
  }
}

std::string address_of(const std::string& host, int32_t port) { return host + ":" + std::to_string(port); }

}  // namespace

std::vector<PlannedTask> plan_tasks(const Options& options, const std::vector<uint16_t>& ports) {
  std::vector<PlannedTask> tasks;
  for (std::size_t h = 0; h < options.hosts.size(); ++h) {
    const Host& host = options.hosts[h];
    for (int32_t i = 0; i < host.num_tasks; ++i) {
      add_worker(options, address_of(host.name, options.first_port + i),
                 static_cast<int32_t>(h) == options.index, &tasks);
    }
  }
  for (const uint16_t port : ports) {
    const auto place = static_cast<int32_t>(tasks.size());
    if (place < options.workers) {
      add_worker(options, address_of("127.0.0.1", port), true, &tasks);
    } else {
      tasks.push_back({"ps", place - options.workers, address_of("127.0.0.1", port), true});
    }
  }
  return tasks;
}

std::string tf_config(const std::vector<PlannedTask>& tasks, std::size_t place) {
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> json(text);
  json.StartObject();
  json.Key("cluster");
  json.StartObject();
  for (const char* job : {"chief", "worker", "ps"}) {
    bool is_open = false;
    for (const PlannedTask& task : tasks) {
      if (std::strcmp(task.job, job) != 0) continue;
      if (!is_open) {
        json.Key(job);
        json.StartArray();
        is_open = true;
      }
      json.String(task.address.data(), static_cast<rapidjson::SizeType>(task.address.size()));
    }
    if (is_open) json.EndArray();
  }
  json.EndObject();
  json.Key("task");
  json.StartObject();
  json.Key("type");
  json.String(tasks[place].job);
  json.Key("index");
  json.Int(tasks[place].index);
  json.EndObject();
  json.EndObject();
  return {text.GetString(), text.GetSize()};
}

}  // namespace dist::launch
