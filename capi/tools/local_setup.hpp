// SPDX-License-Identifier: Apache-2.0
// What a job of one machine gets from the system: ports, and a secret.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dist::launch {

// So many ports of 127.0.0.1, each of them free while they are looked for, and each another; false with errno. Until a task
// binds its port another program can take it.
bool find_free_ports(int32_t n, std::vector<uint16_t>* out);

// 256 random bits in hex; false with errno.
bool make_secret(std::string* out);

}  // namespace dist::launch
