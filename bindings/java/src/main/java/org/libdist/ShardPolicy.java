// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;

/** How a dataset is divided between workers. */
public enum ShardPolicy {
    /** Every worker sees all. */
    OFF(DistModuleConstants.DIST_SHARD_OFF),
    /** FILE where the source reads files, else DATA. */
    AUTO(DistModuleConstants.DIST_SHARD_AUTO),
    /** File i goes to worker i mod W. */
    FILE(DistModuleConstants.DIST_SHARD_FILE),
    /** Element i goes to worker i mod W. */
    DATA(DistModuleConstants.DIST_SHARD_DATA),
    /** Where the source says that it is to be done. */
    HINT(DistModuleConstants.DIST_SHARD_HINT);

    final int code;

    ShardPolicy(int code) {
        this.code = code;
    }

    static ShardPolicy of(int code) {
        for (ShardPolicy each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "ShardPolicy: libdist gave " + code);
    }

    /** TensorFlow's name of it. */
    public String tfName() {
        return Texts.of(DistModule.dist_shard_policy_name(code));
    }

    /**
     * The one of that name, in any case: for settings that are read from a file or a command line.
     *
     * @throws DistException INVALID_ARGUMENT another name; the message says which there are
     */
    public static ShardPolicy fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_shard_policy_from_name(Texts.bytes(name, "name"), out);
        return of(out[0]);
    }
}
