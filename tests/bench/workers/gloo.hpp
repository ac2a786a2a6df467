// SPDX-License-Identifier: Apache-2.0
// Gloo's own allreduce, over its tcp transport on loopback between the same processes. If the build does not
// find Gloo, no_gloo.cpp replaces it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/bench/workers/tensors.hpp"
#include "tests/bench/workers/turns.hpp"

namespace bench {

// "Gloo 0.5.0", or "" without Gloo.
std::string gloo_name();
// The algorithms that are measured.
std::vector<std::string> gloo_algorithms();
// This worker's part in the turns of each algorithm. All workers create them at the same time, and find each
// other by files in page.gloo_folder. The tensors must outlive them.
std::vector<std::unique_ptr<Turns>> gloo_turns(const Page& page, int me, Tensors& tensors);

}  // namespace bench
