# All-reduce over a ring of p devices: every device ends with the sum of everybody's x.
#
# There is no instruction for it: p - 1 steps send a chunk to the next device, which adds it (reduce-scatter), then p - 1 steps send
# the finished chunks round (all-gather). Every device runs this same program and asks which one it is. In step i device d sends
# chunk d - i: the one that came in, and was added, in the step before. So chunk c is summed in the order of devices c, c + 1, ...,
# whoever is fast.
#
# The sequencer only fills queues. What orders the units, on all devices:
#   s0  x is loaded: a token for the link queue, one for the vector unit
#   s1  a chunk to add has arrived (the neighbour's lnk.put signals it), for the vector unit
#   s2  the chunk to send is there, for the link queue
#   s4  a finished chunk has arrived, for the link queue, which sends it on
# A neighbour can be ahead by several steps, so every step has a buffer of its own.
.config npu1-edge devices=4

.equ N 4096                            # elements of x
.equ LENGTH 1024                       # of a chunk: N / p
.equ CHUNK 4096                        # its bytes
.equ BUFFERS 0x40000

.arg x f32[N] inout

.desc whole  dim(N) src(1) dst(1) elem 4
.desc chunk  dim(LENGTH) src(1) dst(1) elem 4
.vdesc both  dim(LENGTH) a.f32(1) b.f32(1) out.f32(1)
.vprog plus
  add v3, v0, v1
.end

        csr r1, device
        csr r2, devices
        sub r3, r2, 1                  # steps of each half
        sub r4, r2, 2
        add r5, r1, 1                  # the next device
        bne r5, r2, window
        movi r5, 0
window: add r5, r5, 0x40               # its window is at (0x40 + device) << 32, its SPM at 0xf0000000 of that
        shl r5, r5, 32
        movi r6, 0xf00 ; shl r6, r6, 20
        add r5, r5, r6
        add r6, r5, BUFFERS            # the buffer there that we fill
        movi r7, BUFFERS               # the buffer here that is filled
        mov r10, r1                    # the chunk to send
        movi r20, 0
        dma.ld.0  [r20], $x, whole     sig s0+2
        sem.wait.vx                    wait s0>=1
        sem.wait.lk0                   wait s0>=1 sig s2+1
        loop r11, r3                   # reduce-scatter
        mul r12, r10, CHUNK
        lnk.put.0 [r6], [r12], chunk, rsem=1, rinc=1    wait s2>=1
        bne r10, r0, down
        mov r10, r2
down:   sub r10, r10, 1
        mul r12, r10, CHUNK
        vx.run [r12], plus, both, a=r7, b=r12           wait s1>=1 sig s2+1
        add r6, r6, CHUNK ; add r7, r7, CHUNK
        endl
        mul r12, r10, CHUNK            # all-gather: the chunk that is finished here goes first
        add r13, r5, r12
        lnk.put.0 [r13], [r12], chunk, rsem=4, rinc=1   wait s2>=1
        loop r11, r4
        bne r10, r0, back
        mov r10, r2
back:   sub r10, r10, 1
        mul r12, r10, CHUNK
        add r13, r5, r12
        lnk.put.0 [r13], [r12], chunk, rsem=4, rinc=1   wait s4>=1
        endl
        # Tokens of s4 are the link queue's. Were the store to wait for one, it could take the first instead of the last; so the
        # link queue takes that one, too, and hands on one of its own.
        sem.wait.lk0                   wait s4>=1 sig s5+1
        dma.st.0  $x, [r20], whole     wait s5>=1
        fence all
        halt
