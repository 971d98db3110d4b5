# A matrix product with double buffering: c = a b, s8 times s8 to s32, 128 x 256 times 256 x 32.
#
# Three units work at the same time: the load queues bring tile t + 1 while the matrix unit multiplies tile t. Two buffers each for
# a's and b's tiles are enough for that. Semaphores count buffers: s0 and s2 those that are free, s1 and s3 those that are loaded.
# A load takes a free one and hands on a loaded one; a multiplication does the reverse.
#
#   npu-as 01_matmul.s -o matmul.npux
#   npu-run matmul.npux --inputs=in.npz --report
.config npu1-edge

.arg a s8[128,256] in
.arg b s8[256,32] in
.arg c s32[128,32] out

# What a load copies: 128 rows of 32 bytes out of rows of 256; 32 rows of 32; and the rows that the array streams.
.desc tile_a dim(128,32) src(256,1) dst(32,1) elem 1
.desc tile_b dim(32,32) src(32,1) dst(32,1) elem 1
.desc rows   dim(128) src(32) dst(0) elem 1
.desc result dim(128,32) src(32,1) dst(32,1) elem 4

        sem.set s0, 2 ; sem.set s2, 2        # two free buffers each
        movi r1, 0                           # a's buffers: 0 and 0x1000
        movi r3, 0x4000                      # b's: 0x4000 and 0x4400
        movi r6, 0x8000                      # the result's
        movi r11, 0                          # the first tile replaces what the accumulators hold, the others add
        loop r10, 8                          # 256 = 8 tiles of 32
        dma.ld.0   [r1], $a[r2], tile_a   wait s0>=1 sig s1+1
        dma.ld.1   [r3], $b[r4], tile_b   wait s2>=1 sig s3+1
        mx.ldw.s8  [r3], k=32, n=32       wait s3>=1 sig s2+1   # weights into the shadow plane; the buffer is free again
        mx.swp
        mx.mm.s8   [r1], acc[0], rows, acc=r11  wait s1>=1 sig s0+1
        xor r1, r1, 0x1000 ; xor r3, r3, 0x400                  # the other buffers
        add r2, r2, 32 ; add r4, r4, 1024                       # the next tiles
        movi r11, 1
        endl
        mx.out.s32 acc[0], [r6], result   sig s4+1
        dma.st.0   $c, [r6], result       wait s4>=1
        fence all
        halt
