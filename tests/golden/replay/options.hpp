// SPDX-License-Identifier: Apache-2.0
// Support for the replays of area "options".
#pragma once

#include <string>
#include <vector>

#include "tests/golden/harness/replay.hpp"

namespace golden {

// tf.distribute.MirroredStrategy(names, cross_device_ops). Without names, it has `num_replicas` replicas.
Strategy mirrored_of(const std::vector<std::string>& names, int32_t num_replicas,
                     dist_cross_device* cross_device);

// Objects that are created and inspected.
void replay_cross_device_object(Replay& replay);
// Objects that are passed to a strategy.
void replay_cross_device_in_strategy(Replay& replay);
// Objects that are used without a strategy.
void replay_cross_device_alone(Replay& replay);

}  // namespace golden
