// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;

/** A function that other processes call by name; see {@link RpcServer#register}. */
@FunctionalInterface
public interface RpcFunction {
    /**
     * Receives the positional arguments, which are closed when it returns. Returns a result, or null for
     * none. If it throws, the client receives the status and message of a {@link DistException}, or UNKNOWN
     * and the text of another exception. It is called on several threads at the same time. Use {@link
     * Strategy#current} to create values.
     */
    Value call(RpcContext context, List<Value> arguments) throws Exception;
}
