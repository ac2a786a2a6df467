// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "cluster.hpp"

namespace golden {
namespace {

using TextOf = dist_status (*)(const dist_cluster_resolver*, char*, std::size_t, int32_t*);

Json text(Replay& replay, const ClusterResolver& resolver, TextOf text_of) {
  char room[DIST_MAX_ADDRESS_BYTES];
  int32_t is_set = 0;
  check(text_of(resolver.get(), room, sizeof room, &is_set));
  return is_set == 0 ? replay.null() : replay.json(static_cast<const char*>(room));
}

// Returns a dictionary's key as text. json.dumps() writes integers as strings, and int() reads True as 1.
std::string key_of(const Json& key) {
  if (key.IsString()) return std::string(text_of(key));
  if (key.IsBool()) return key.GetBool() ? "1" : "0";
  return std::to_string(key.GetInt64());
}

}  // namespace

Json plain(Replay& replay, const Json& recorded) {
  if (recorded.IsArray()) {
    std::vector<Json> items;
    for (const Json& item : recorded.GetArray()) items.push_back(plain(replay, item));
    return replay.array(std::move(items));
  }
  if (!recorded.IsObject()) return Json(recorded, replay.memory());
  if (const Json* const bytes = find(recorded, "bytes"); bytes != nullptr && bytes->IsString()) {
    return Json(*bytes, replay.memory());
  }
  std::vector<std::pair<std::string, Json>> members;
  if (const Json* const dict = find(recorded, "dict"); dict != nullptr && recorded.MemberCount() == 1) {
    for (const Json& pair : dict->GetArray()) members.emplace_back(key_of(pair[0]), plain(replay, pair[1]));
  } else {
    for (const auto& [name, value] : recorded.GetObject()) {
      members.emplace_back(std::string(text_of(name)), plain(replay, value));
    }
  }
  return replay.object(std::move(members));
}

ClusterSpec spec_from_text(Replay& replay, const Json& recorded) {
  ClusterSpec spec;
  check(dist_cluster_spec_from_json(to_text(plain(replay, recorded)).c_str(), nullptr, spec.out()));
  return spec;
}

ClusterSpec spec_from_arrays(Replay& replay, const Json& recorded) {
  struct Lists {
    std::vector<const char*> addresses;
    std::vector<int32_t> indices;
  };
  const Json cluster = plain(replay, recorded);
  std::vector<Lists> lists(cluster.MemberCount());
  std::vector<dist_cluster_job> jobs;
  for (const auto& [name, tasks] : cluster.GetObject()) {
    Lists& one = lists[jobs.size()];
    if (tasks.IsArray()) {
      for (const Json& address : tasks.GetArray()) one.addresses.push_back(address.GetString());
    } else {
      for (const auto& [index, address] : tasks.GetObject()) {
        one.indices.push_back(std::atoi(index.GetString()));
        one.addresses.push_back(address.GetString());
      }
    }
    jobs.push_back({name.GetString(), one.addresses.data(), tasks.IsArray() ? nullptr : one.indices.data(),
                    one.addresses.size()});
  }
  ClusterSpec spec;
  check(dist_cluster_spec_create(jobs.data(), jobs.size(), nullptr, spec.out()));
  return spec;
}

Json as_dict(Replay& replay, const dist_cluster_spec* spec) {
  rapidjson::Document document(&replay.memory());
  document.Parse(dist_cluster_spec_json(spec));
  return Json(std::move(static_cast<Json&>(document)));
}

Json spec_of(Replay& replay, const ClusterResolver& resolver) {
  ClusterSpec spec;
  check(dist_cluster_resolver_spec(resolver.get(), spec.out()));
  return as_dict(replay, spec.get());
}

Json task_type(Replay& replay, const ClusterResolver& resolver) {
  return text(replay, resolver, dist_cluster_resolver_task_type);
}

Json task_id(Replay& replay, const ClusterResolver& resolver) {
  int32_t id = 0;
  check(dist_cluster_resolver_task_id(resolver.get(), &id));
  return id == DIST_TASK_UNSET ? replay.null() : replay.json(id);
}

Json rpc_layer(Replay& replay, const ClusterResolver& resolver) {
  return text(replay, resolver, dist_cluster_resolver_rpc_layer);
}

Json environment(Replay& replay, const ClusterResolver& resolver) {
  return text(replay, resolver, dist_cluster_resolver_environment);
}

Json master(Replay& replay, const ClusterResolver& resolver, const char* type, int32_t id,
            const char* layer) {
  char room[DIST_MAX_ADDRESS_BYTES];
  check(dist_cluster_resolver_master(resolver.get(), type, id, layer, room, sizeof room));
  return replay.json(static_cast<const char*>(room));
}

Json num_accelerators(Replay& replay, const ClusterResolver& resolver, bool zero_too) {
  int32_t number = 0;
  check(dist_cluster_resolver_num_accelerators(resolver.get(), nullptr, DIST_TASK_UNSET, &number));
  std::vector<std::pair<std::string, Json>> members;
  if (number != 0 || zero_too) members.emplace_back("GPU", replay.json(number));
  return replay.object(std::move(members));
}

const char* ResolverArguments::keep(const Json& text) {
  return texts_.emplace_back(std::make_unique<std::string>(text_of(text)))->c_str();
}

bool ResolverArguments::read(const Json& kwargs) {
  for (const auto& [name, value] : kwargs.GetObject()) {
    const std::string_view key = text_of(name);
    if (key == "task_id" && (value.IsInt() || value.IsString())) {
      options_.has_task_id = 1;
      options_.task_id = value.IsInt() ? value.GetInt() : std::stoi(std::string(text_of(value)));
    } else if (key == "num_accelerators" && value.IsObject()) {
      options_.num_accelerators = member(value, "GPU").GetInt();
    } else if (key == "task_type" && value.IsString()) {
      options_.task_type = keep(value);
    } else if (key == "rpc_layer" && value.IsString()) {
      options_.rpc_layer = keep(value);
    } else if (key == "environment" && value.IsString()) {
      options_.environment = keep(value);
    } else if (key == "master" && value.IsString()) {
      options_.session_address = keep(value);
    } else {
      return false;
    }
  }
  return true;
}

void set_environment(const char* name, const std::optional<std::string>& value) {
  if (value) {
    setenv(name, value->c_str(), 1);
  } else {
    unsetenv(name);
  }
}

}  // namespace golden
