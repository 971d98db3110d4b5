# A convolution without im2col: x f32[1,10,10,4] (NHWC, padded by 1 already), w f32[36,8] (kh, kw, ci by co), y f32[1,8,8,8].
#
# Element (oh, ow, co) is the sum over the 36 taps (kh, kw, ci) of x[oh + kh, ow + kw, ci] w[kh, kw, ci, co]. The array has 32 rows,
# so the taps come in two groups of 18. A row of A is not one run of bytes: its element i lies at row + koff[i], and the table of
# these offsets is the whole trick. Row (oh, ow) begins at oh * 10 * 4 + ow * 4 elements, which the descriptor's two levels say.
.config npu1-edge

.arg x f32[10,10,4] in
.arg w f32[36,8] in
.arg y f32[8,8,8] out

# Bytes from the window's corner to tap (kh, kw, ci): (kh * 10 + kw) * 16 + ci * 4.
.const taps s32[36] 0 4 8 12  16 20 24 28  32 36 40 44  160 164 168 172  176 180 184 188  192 196 200 204  320 324 328 332  336 340 344 348  352 356 360 364

.desc all_x  dim(400) src(1) dst(1) elem 4
.desc all_w  dim(288) src(1) dst(1) elem 4
.desc table  dim(36) src(1) dst(1) elem 4
.desc window dim(8,8) src(40,4) dst(0,0) elem 4
.desc image  dim(64,8) src(8,1) dst(8,1) elem 4

        movi r1, 0                    # x
        movi r2, 0x1000               # w
        movi r3, 0x2000               # the table
        movi r4, 0x3000               # y
        dma.ld.0 [r3], $taps, table   sig s0+1
        dma.ld.0 [r1], $x, all_x      sig s0+1
        dma.ld.1 [r2], $w, all_w      sig s1+1
        mx.ldw.f32 [r2], k=18, n=8    wait s1>=1
        mx.swp
        mx.mm.f32 [r1], acc[0], window, koff=r3          wait s0>=2
        add r2, r2, 576               # the second group: 18 * 8 weights and 18 offsets on
        add r3, r3, 72
        movi r11, 1
        mx.ldw.f32 [r2], k=18, n=8
        mx.swp
        mx.mm.f32 [r1], acc[0], window, acc=r11, koff=r3
        mx.out.f32 acc[0], [r4], image, relu             sig s2+1
        dma.st.0 $y, [r4], image                         wait s2>=1
        fence all
        halt
