// SPDX-License-Identifier: Apache-2.0
// Ports and a secret for a job on one machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/tools/fd.hpp"

namespace dist::launch {

// A port of 127.0.0.1 that the launcher keeps for a task. The socket is bound but never listens, and has
// SO_REUSEADDR: a task that sets SO_REUSEADDR, as servers do, can listen on the port, and the system assigns
// it to no other process.
struct HeldPort {
  Fd socket;
  uint16_t port = 0;
};

// Finds n different free ports of 127.0.0.1. Returns false and sets errno on failure.
bool hold_free_ports(int32_t n, std::vector<HeldPort>* out);

// 256 random bits in hex. Returns false and sets errno on failure.
bool make_secret(std::string* out);

}  // namespace dist::launch
