# kb serve, as a user without rights, with all that it keeps in one volume:
#
#   docker build -t kb-search .
#   docker run --rm -v kb:/data kb-search token add me --role admin
#   docker run -d -p 127.0.0.1:7777:7777 -v kb:/data kb-search
#
# The server asks every caller for the token. docs/how-to/install.md says more.
FROM python:3.12-slim AS build
# serve, or serve,postgres for a home in a database, or serve,postgres,s3 where that has a bucket.
ARG EXTRAS=serve
WORKDIR /src
COPY . .
RUN python -m venv /opt/kb \
    && /opt/kb/bin/pip install --no-cache-dir -c constraints.txt ".[${EXTRAS}]"

FROM python:3.12-slim
LABEL org.opencontainers.image.title="kb-search" \
      org.opencontainers.image.description="A local-first hybrid search engine and knowledge base" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin kb \
    && install -d -o kb -g kb -m 0700 /data
COPY --from=build /opt/kb /opt/kb
# The home, the list of trusted homes and the settings all lie in the volume.
ENV PATH=/opt/kb/bin:$PATH \
    HOME=/data \
    XDG_DATA_HOME=/data/share \
    XDG_CONFIG_HOME=/data/config \
    XDG_CACHE_HOME=/data/cache \
    PYTHONDONTWRITEBYTECODE=1
USER kb
WORKDIR /data
VOLUME /data
EXPOSE 7777
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:7777/health/ready', timeout=4)"]
ENTRYPOINT ["kb"]
CMD ["serve", "--host", "0.0.0.0", "--port", "7777", "--log", "json"]
