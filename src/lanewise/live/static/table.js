// Made by `python -m lanewise.live.protocol`; change lanewise/live/protocol.py.
export const PATH = "/v1/feed";
export const MAGIC = "LWV1";
export const HEADER = [["kind","B",4,1],["flags","B",5,1],["components","B",6,1],["order","B",7,1],["sequence","I",8,1],["count","I",12,1],["first","I",16,1],["total","I",20,1],["step","Q",24,1],["time","d",32,1],["origin","f",40,3],["extent","f",52,3],["low","f",64,1],["high","f",68,1],["scale","i",72,1]];
export const HEADER_BYTES = 80;
export const SCALES = ["linear","log","rank"];
export const KINDS = {"points":0,"arrows":1,"slice":2,"volume":3,"suffix":4,"statistics":5,"boxes":6};
export const STRIDES = {"points":8,"arrows":12,"suffix":0,"boxes":16};
export const FLAGS = {"walls":1,"past":2,"clamped":4};
export const CLOSED = {"4401":"wrong token: open the whole address that the run printed","4429":"the run has as many viewers as it takes"};
export const GONE = 1001;
export const BACK_OFF = [500,8000];
export const MAPS = {"viridis":"440154470d6048186a482374472d7b4537814240863e49893b528b375b8d33638d2f6b8e2c728e297a8e26828e23898e21918c1f988b1fa08822a78528ae8032b67a3fbc734ec36b5ec96270cf5784d44b98d83eaddc30c2df23d8e219ece51bfde725","magma":"0000040303120a0822130d341d114729115a36106b440f7651127c5d177f6a1c81762181832681902a819c2e7faa337db73779c43c75d0416fdc4869e75263ef5d5ef56b5cf9795dfc8961fd9869fea772feb67cfec488fed395fde2a3fcf0b2fcfdbf","coolwarm":"3b4cc0445acc4e68d85875e16282ea6c8ff1779af782a6fb8db0fe98b9ffa3c2feaec9fcb9d0f9c3d5f4ccd9edd5dbe5dddcdce5d8d1ecd3c5f1ccb8f5c4acf7ba9ff7b093f6a586f4987af08b6eeb7d62e46e56dd5f4bd44e41ca3b37be242eb40426","ember":"3b4fd83e5bdc4167e04474e34880e74b8ceb4e98ef57a3f063adf170b7f17cc1f189cbf196d5f2a3dcefb1dde2bfded5cee0c9dce1bcebe2aff9e3a3fcdb95fcd387fdca7afdc16cfeb85effaf51ffa649ff9c47ff9245ff8743ff7d41ff733fff6a3d"};
