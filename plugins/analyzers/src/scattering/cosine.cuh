// cos 2 pi x, as in turns.rs.
__device__ __forceinline__ double cosine(double x) {
    double y = fabs(minus(x, rint(x)));
    const bool far = y > 0.25;
    if (far) y = minus(0.5, y);
    const double z = times(y, y);
    double sum = COSINE_12;
    sum = plus(times(sum, z), COSINE_11);
    sum = plus(times(sum, z), COSINE_10);
    sum = plus(times(sum, z), COSINE_9);
    sum = plus(times(sum, z), COSINE_8);
    sum = plus(times(sum, z), COSINE_7);
    sum = plus(times(sum, z), COSINE_6);
    sum = plus(times(sum, z), COSINE_5);
    sum = plus(times(sum, z), COSINE_4);
    sum = plus(times(sum, z), COSINE_3);
    sum = plus(times(sum, z), COSINE_2);
    sum = plus(times(sum, z), COSINE_1);
    sum = plus(times(sum, z), COSINE_0);
    return far ? -sum : sum;
}
