// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;

/** A function that other processes call by a name, see {@link RpcServer#register}. */
@FunctionalInterface
public interface RpcMethod {
    /**
     * Gets the positional arguments, which are closed when it returns. Returns a result, or null: nothing. What it
     * throws goes to the client: of a {@link DistException} the status and the message, of others UNKNOWN and their
     * text. Called on several threads at a time. Values are made with {@link Strategy#current}.
     */
    Value call(RpcContext context, List<Value> arguments) throws Exception;
}
