// SPDX-License-Identifier: Apache-2.0
#include "play.hpp"

#include <exception>
#include <utility>

#include "state.hpp"

namespace golden {

class Player {
 public:
  Player(ReplayFn fn, const Case& one) : fn_(fn), replay_(one.id, *one.strategy, *one.inputs) {}

  std::string play() {
    call();
    if (const std::string trouble = afterwards(); !trouble.empty()) add("afterwards", replay_.json(trouble));
    return to_text(line_);
  }

 private:
  void call() {
    try {
      try {
        fn_(replay_);
        rethrow_kept();
        add("recorded", std::move(replay_.state_->recorded));
      } catch (const Failed& failed) {
        rethrow_kept();
        add("status", Json(failed.status));
        add("message", replay_.json(failed.message));
      }
    } catch (const Unknown& unknown) {
      add("unknown", replay_.json(unknown.what));
    } catch (const Malformed& malformed) {
      add("malformed", replay_.json(malformed.what));
    } catch (const std::exception& exception) {
      add("unknown", replay_.json("what to do: " + std::string(exception.what())));
    }
  }

  // Whatever the case did, the strategy must still work and be destroyed. Returns "" or what is wrong.
  std::string afterwards() {
    Replay::State& state = *replay_.state_;
    if (state.strategy == nullptr) return "";
    try {
      const ReplicaFn probe = [](dist_replica* replica, dist_value*, dist_value*) -> Value {
        float one = 1;
        const dist_tensor tensor{&one, DIST_F32, 0, nullptr, nullptr};
        check(dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, const_cast<dist_tensor*>(&tensor), 1,
                              nullptr, nullptr));
        const auto all = static_cast<float>(dist_replica_num_replicas(replica));
        if (one != all) raise(DIST_UNKNOWN, "all_reduce(SUM, 1.0) gives " + std::to_string(one));
        return {};
      };
      run(state.strategy, probe);
    } catch (const Failed& failed) {
      return failed.message;
    }
    state.interned.clear();
    if (!state.owned) return "";
    if (dist_strategy_destroy(state.owned.get()) != DIST_OK) return dist_last_error();
    static_cast<void>(state.owned.release());
    return "";
  }

  void add(const char* key, Json json) { line_.AddMember(rapidjson::StringRef(key), json, replay_.memory()); }

  ReplayFn fn_;
  Replay replay_;
  Json line_{rapidjson::kObjectType};
};

std::string play(ReplayFn replay, const Case& one) { return Player(replay, one).play(); }

}  // namespace golden
