// SPDX-License-Identifier: Apache-2.0
#include "replay.hpp"

#include "elements.hpp"
#include "state.hpp"

namespace golden {
namespace {

// Limits all waits of a case, so that a collective that never completes is an error and not a hang.
constexpr int64_t kTimeoutNs = 20'000'000'000;

struct Kind {
  std::string_view name;
  dist_strategy_kind kind;
};
constexpr Kind kKinds[] = {
    {"MirroredStrategy", DIST_STRATEGY_MIRRORED},
    {"OneDeviceStrategy", DIST_STRATEGY_ONE_DEVICE},
    {"DefaultStrategy", DIST_STRATEGY_DEFAULT},
    {"CentralStorageStrategy", DIST_STRATEGY_CENTRAL_STORAGE},
};

// "a/b#2" becomes "a", "b". The first part, which names the strategy, is omitted.
std::vector<std::string> topics_of(std::string_view id) {
  if (const std::size_t repeat = id.rfind('#'); repeat != id.npos && repeat + 1 < id.size() &&
                                                id.find_first_not_of("0123456789", repeat + 1) == id.npos) {
    id = id.substr(0, repeat);
  }
  std::vector<std::string> topics;
  for (std::size_t slash = id.find('/'); slash != id.npos;) {
    const std::size_t next = id.find('/', slash + 1);
    topics.emplace_back(id.substr(slash + 1, next == id.npos ? next : next - slash - 1));
    slash = next;
  }
  return topics;
}

}  // namespace

Replay::Replay(std::string_view id, const Json& strategy, const Json& inputs)
    : id_(id), topics_(topics_of(id)), state_(std::make_unique<State>()) {
  for (const std::string& topic : topics_) joined_ += (joined_.empty() ? "" : "/") + topic;
  state_->description.CopyFrom(strategy, memory());
  state_->inputs.CopyFrom(inputs, memory());
  description_ = &state_->description;
  inputs_ = &state_->inputs;
}

Replay::~Replay() = default;

std::string_view Replay::topic(std::size_t index) const noexcept {
  return index < topics_.size() ? std::string_view(topics_[index]) : std::string_view();
}

std::vector<int32_t> Replay::axes() const {
  const Json& axis = input("axis");
  std::vector<int32_t> axes;
  if (axis.IsArray()) {
    for (const Json& one : axis.GetArray()) axes.push_back(one.GetInt());
  } else if (!axis.IsNull()) {
    axes.push_back(axis.GetInt());
  }
  return axes;
}

void Replay::unknown(std::string_view what) const { throw Unknown{std::string(what)}; }

dist_strategy_options Replay::options_for(const Json& description) {
  const std::string_view name = text_of(member(description, "name"));
  for (const Kind& kind : kKinds) {
    if (kind.name != name) continue;
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = kind.kind;
    options.num_replicas = member(description, "num_replicas").GetInt();
    options.timeout_ns = kTimeoutNs;
    return options;
  }
  throw Unknown{"a strategy called \"" + std::string(name) + "\""};
}

dist_strategy* Replay::strategy() {
  const std::lock_guard lock(state_->mutex);
  if (state_->strategy == nullptr && is_default()) state_->strategy = dist_get_strategy();
  if (state_->strategy == nullptr) {
    const dist_strategy_options options = options_for(*description_);
    check(dist_strategy_create(&options, state_->owned.out()));
    state_->strategy = state_->owned.get();
  }
  return state_->strategy;
}

dist_strategy* Replay::State::memory_of(Replay& replay) {
  const std::string_view name = text_of(member(description, "name"));
  if (name != "none" && name != "MultiWorkerMirroredStrategy" && name != "ParameterServerStrategy")
    return replay.strategy();
  const std::lock_guard lock(mutex);
  if (!for_values) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = DIST_STRATEGY_DEFAULT;
    options.num_replicas = 1;
    check(dist_strategy_create(&options, for_values.out()));
  }
  return for_values.get();
}

JsonMemory& Replay::memory() { return state_->document.GetAllocator(); }

void Replay::record(std::string_view key, Json json) {
  Json name(key.data(), static_cast<rapidjson::SizeType>(key.size()), memory());
  if (find(state_->recorded, key) != nullptr) throw Unknown{"\"" + std::string(key) + "\" is recorded twice"};
  state_->recorded.AddMember(name, json, memory());
}

void Replay::record_whole(Json json) { state_->recorded = json; }

Json Replay::encode_error(dist_status status) {
  Json json(rapidjson::kObjectType);
  json.AddMember("kind", "error", memory());
  json.AddMember("status", status, memory());
  return json;
}

Json Replay::attempt(const std::function<Json()>& body) {
  Json json(rapidjson::kObjectType);
  try {
    Json value = body();
    json.AddMember("value", value, memory());
  } catch (const Failed& failed) {
    Json error = encode_error(failed.status);
    json.AddMember("error", error, memory());
  }
  return json;
}

Json Replay::json(std::string_view text) {
  return Json(text.data(), static_cast<rapidjson::SizeType>(text.size()), memory());
}

Json Replay::json(double number) { return number_to_json(number); }

Json Replay::array(std::vector<Json> items) {
  Json json(rapidjson::kArrayType);
  for (Json& item : items) json.PushBack(item, memory());
  return json;
}

Json Replay::object(std::vector<std::pair<std::string, Json>>&& members) {
  Json object(rapidjson::kObjectType);
  for (auto& [key, value] : members) object.AddMember(json(key), value, memory());
  return object;
}

}  // namespace golden
