// SPDX-License-Identifier: Apache-2.0
// Ports and a secret for a job on one machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dist::launch {

// Finds n different free ports of 127.0.0.1. Returns false and sets errno on failure. Another program can
// take a port until the task binds it.
bool find_free_ports(int32_t n, std::vector<uint16_t>* out);

// 256 random bits in hex. Returns false and sets errno on failure.
bool make_secret(std::string* out);

}  // namespace dist::launch
