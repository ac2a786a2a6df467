// SPDX-License-Identifier: Apache-2.0
// Translates the texts with which gRPC reports a failed connection, because they name gRPC's own functions
// and states.
#pragma once

#include <string>

namespace dist::grpc_link {

// "UNKNOWN: ipv4:10.0.0.7:2222: Failed to connect to remote host: Connection refused" becomes "connection
// refused at 10.0.0.7:2222". Texts of libdist, with which peers refuse links, are not changed.
std::string explain_status(std::string status);

// Whether the explained status means that no program listens at the address.
bool nobody_listens(const std::string& explained) noexcept;

}  // namespace dist::grpc_link
