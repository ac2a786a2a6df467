// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

import org.libdist.internal.DistModule;

/** The way in which a dataset is divided among workers (TensorFlow: AutoShardPolicy). */
public enum ShardPolicy {
    /** FILE if the source reads files, else DATA. */
    AUTO(0x1200),
    /** File i goes to worker i mod W. */
    FILE(0x1201),
    /** Element i goes to worker i mod W. */
    DATA(0x1202),
    /** As the source requests with its shard_hint option. */
    HINT(0x1203),
    /** Every worker sees all elements. */
    OFF(0x1204);

    final int code;

    ShardPolicy(int code) {
        this.code = code;
    }

    static ShardPolicy of(int code) {
        return switch (code) {
            case 0x1200 -> AUTO;
            case 0x1201 -> FILE;
            case 0x1202 -> DATA;
            case 0x1203 -> HINT;
            case 0x1204 -> OFF;
            default -> throw new DistException(Status.INTERNAL, "ShardPolicy: libdist gave " + code);
        };
    }

    /** Returns TensorFlow's name of this constant; null if it has none. */
    public String tfName() {
        return Texts.of(DistModule.dist_enum_name(DistModule.DIST_ENUM_SHARD_POLICY, code));
    }

    /**
     * Converts TensorFlow's name. Upper and lower case are equal. Use it for settings from files and command lines.
     *
     * @throws DistException INVALID_ARGUMENT if the name is unknown; the message lists the known names
     */
    public static ShardPolicy fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_enum_from_name(DistModule.DIST_ENUM_SHARD_POLICY, Texts.bytes(name, "name"), out);
        return of(out[0]);
    }
}
