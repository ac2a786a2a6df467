// SPDX-License-Identifier: Apache-2.0
// Releases gRPC's channels. gRPC 1.51 leaks the socket of a channel that is destroyed while it connects if a
// call has waited for it, so such a channel is kept until the attempt has ended, which takes at most
// kHandshakeNs.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

namespace dist::grpc_link {

// A channel and the IP addresses to which it connects, in ascending order.
struct Route {
  std::shared_ptr<grpc::Channel> channel;
  std::vector<std::string> hosts;
};

bool connects(grpc::Channel& channel) noexcept;

// Removes from `retired` the channels that no link uses any more and that are not connecting, and returns
// them.
std::vector<std::shared_ptr<grpc::Channel>> take_idle(std::vector<std::shared_ptr<grpc::Channel>>& retired);

// Destroys the channels. Waits briefly for those that are connecting, and leaves the rest to a thread that
// ends when no channel is left. No link may use them any more. Must not be called on a gRPC thread.
void release(std::vector<std::shared_ptr<grpc::Channel>> channels) noexcept;

}  // namespace dist::grpc_link
